"""One step backward in words: node by node, from the loss to the leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import Node

from lab.config import Config
from lab.errors import UserError
from lab.graph import nodes_between, users_line
from lab.parts import make_parts, threads_for

Gradients = Sequence[Tensor | None]


def backward_in_words(config: Config) -> str:
    """Run forward and backward of the first step, and say what each node did in backward.

    Returns:
        For each node, in the order in which autograd calls them: its name, file and line where it
        is a user's Function, the bytes that its forward saved for it, and shape and Euclidean norm
        of each gradient that came in and went out; None where none is needed.

    Raises:
        UserError: a part can't be made, or the config resumes a run.
    """
    if config.resume:
        raise UserError("show=backward is not possible with resume: it shows a first step")
    data, model, _ = make_parts(config)
    torch.set_num_threads(threads_for(config, data, model.parameters()))
    loss = data.loss(model(data.x), data.y)
    blocks = [f"loss {loss.item():.4g}, and its backward:"]

    def begin(title: str, came_in: Gradients) -> None:
        blocks.append("\n".join([title, *_described("in ", came_in)]))

    def end(out: Gradients) -> None:
        blocks[-1] = "\n".join([blocks[-1], *_described("out", out)])

    for node in nodes_between(loss.grad_fn):
        title = ", ".join(filter(None, [node.name(), users_line(node), _saved(node)]))
        # Before and after the node, which may edit what came in. Autograd calls one at a time.
        node.register_prehook(lambda came_in, title=title: begin(title, came_in))
        node.register_hook(lambda out, _: end(out))
    for name, weight in model.named_parameters():
        weight.register_hook(lambda grad, name=name: begin(f"{name}.grad", [grad]))
    loss.backward()
    return "\n\n".join(blocks)


def _saved(node: Node) -> str:
    """What forward saved: a Function's `saved_tensors`, attributes of a node that PyTorch wrote."""
    names = [name for name in dir(node) if name.startswith("_saved_")]
    saved = [*getattr(node, "saved_tensors", ()), *(getattr(node, name) for name in names)]
    count = sum(tensor.nbytes for tensor in saved if isinstance(tensor, Tensor))
    return f"{count:,} bytes saved"


def _described(direction: str, gradients: Gradients) -> Iterator[str]:
    for gradient in gradients:
        shape = "None" if gradient is None else str(tuple(gradient.shape))
        norm = "" if gradient is None else f" norm {gradient.norm().item():.4g}"
        yield f"  {direction} {shape:13}{norm}".rstrip()
