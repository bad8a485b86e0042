"""A recorded training, rebuilt from its summary and stepped again, with every tensor named."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from lab.errors import UserError
from lab.graph import nodes_between
from lab.parts import DTYPES, make_parts, threads_for
from lab.recording.folder import recorded_config
from lab.recording.reading import RecordedRun

LAYERS = ("linear1", "activation", "linear2")
NOTHING = torch.empty(0)


@dataclass
class Operation:
    """What a layer, the whole model, the loss or the optimizer did in one step.

    Attributes:
        call: input -> output; a layer finds its parameters itself.
        nodes: those that it added to the graph, the one of its output first.
        input, grad_output: copies; empty where there is none.
    """

    name: str
    call: Any = None
    input: Tensor = NOTHING
    nodes: tuple[Node, ...] = ()
    grad_output: Tensor = NOTHING


@dataclass
class Result:
    """A tensor of one step, and the operation that computed it.

    Attributes:
        wrt: "output", or what the gradient is taken with respect to: "input" or a parameter's name.
        transposed: whether `tensor` is (in_features, out_features) and its parameter is not.
    """

    name: str
    tensor: Tensor
    operation: Operation
    wrt: str = ""
    transposed: bool = False

    def again(self, dtype: str, device: str, threads: int) -> Tensor:
        """Compute the tensor again from the same input, with other settings."""
        torch.set_num_threads(threads)
        call, to = self.operation.call, (device, DTYPES[dtype])
        parameters: dict[str, Tensor] = {}
        if isinstance(call, nn.Module):
            module = copy.deepcopy(call).to(*to)
            # Not the module itself, which would call the hooks that record a step.
            call = module.forward
            parameters.update(module.named_parameters())
        parameters["input"] = self.operation.input.to(*to).requires_grad_()
        output = call(parameters["input"].clone())  # it may work in place
        if self.wrt == "output":
            return output.detach()
        grad_output = self.operation.grad_output.to(*to)
        (grad,) = torch.autograd.grad(output, parameters[self.wrt], grad_output)
        return grad.t() if self.transposed else grad


Pair = tuple[Result, Result]


class Training:
    """One recorded run, ready to be stepped again.

    Args:
        run: to rebuild from its summary.
        by_layer: whether to record each layer of the model, where it has those of `LAYERS`.

    Attributes:
        loss: of the last step.
        results: its outputs and gradients, in program order.
        before: the parameters before its update.
        mismatch: where the replay first gave another loss than the recorded one; "" so far.

    Raises:
        UserError: a part of the run can't be made, or its summary does not say which parts it had.
    """

    def __init__(self, run: RecordedRun, by_layer: bool) -> None:
        if not isinstance(run.summary.config.get("model"), dict):
            raise UserError("its summary does not say what it was made of")
        if not run.summary.steps:
            reason = run.summary.error or run.summary.status
            raise UserError(f"it did not complete a step: {reason}")
        self.config = recorded_config(run.folder)
        self.data, self.model, self.optimizer = make_parts(self.config)
        self.parameters = dict(self.model.named_parameters())
        self.dtype, self.device = self.config.dtype, str(next(self.model.parameters()).device)
        weights = self.parameters.values()
        self.threads = run.summary.threads or threads_for(self.config, self.data, weights)
        self.step, self.loss, self.mismatch = 0, math.nan, ""
        self.results: list[Result] = []
        self.before: dict[str, Tensor] = {}
        self._recorded = dict(zip(run.steps.tolist(), run.losses.tolist(), strict=True))
        self._random_state = torch.get_rng_state()
        by_layer = by_layer and all(hasattr(self.model, name) for name in LAYERS)
        for name in LAYERS if by_layer else ("model",):
            self._watch(name, getattr(self.model, name) if by_layer else self.model)

    def _watch(self, name: str, layer: Callable[..., Tensor]) -> None:
        if isinstance(layer, nn.Module):
            layer.register_forward_hook(lambda _, inputs, output: self._add(name, layer, output))
        else:
            setattr(self.model, name, lambda *inputs: self._add(name, layer, layer(*inputs)))

    def _add(self, name: str, call: Callable[..., Tensor], output: Tensor) -> Tensor:
        if self.results:
            input, before = self.results[-1].tensor, self.results[-1].operation.nodes
        else:
            input, before = NOTHING if self.data.x is None else self.data.x, ()
        operation = Operation(name, call, input, nodes_between(output.grad_fn, before))
        title = "the loss" if name == "loss" else f"the output of {name}"
        # Copies, as the next layer may work in place, and so may a backward.
        self.results.append(Result(title, output.detach().clone(), operation, "output"))
        if output.requires_grad:
            output.register_hook(lambda grad: setattr(operation, "grad_output", grad.clone()))
        return output

    @property
    def machine(self) -> tuple[str, str, int]:
        """What it computes with, as arguments of `Result.again`."""
        return self.dtype, self.device, self.threads

    def start(self) -> list[Result]:
        """The data and the initial parameters."""
        data, start = {"x": self.data.x, "y": self.data.y}, Operation("start")
        given = [Result(name, tensor, start) for name, tensor in data.items() if tensor is not None]
        return given + self._parameters("", start)

    def forward_and_backward(self) -> list[Result]:
        """Run the first half of a step of train.py; outputs, then gradients, in program order."""
        self.results = []
        self.before = {name: weight.detach().clone() for name, weight in self.parameters.items()}
        with self._own_state():
            output = self.model(self.data.x)
            loss = self._add("loss", self._loss, self._loss(output))
            self.optimizer.zero_grad()
            loss.backward()
        recorded, self.loss = self._recorded.get(self.step, loss.item()), loss.item()
        if not self.mismatch and repr(recorded) != repr(self.loss):
            self.mismatch = f"step {self.step} gives {self.loss!r} instead of {recorded!r}"
        self.results += self._gradients()
        return self.results

    def update(self) -> list[Result]:
        """Run the second half of a step; the parameters after it."""
        with self._own_state():
            self.optimizer.step()
        self.step += 1
        return self._parameters(" after the update", Operation("optimizer"))

    @contextmanager
    def _own_state(self) -> Iterator[None]:
        """Continue with this training's threads and random numbers: two trainings take turns."""
        torch.set_num_threads(self.threads)
        torch.set_rng_state(self._random_state)
        yield
        self._random_state = torch.get_rng_state()

    def _loss(self, output: Tensor) -> Tensor:
        return self.data.loss(output, self.data.to(output.device, output.dtype).y)

    def _gradients(self) -> list[Result]:
        operations = {result.operation.name: result.operation for result in self.results}
        found = [
            Result(f"the gradient of the output of {one.name}", one.grad_output, after, "input")
            for one, after in reversed([*pairwise(operations.values())])
            if one.grad_output is not NOTHING
        ]
        for name, weight in self.parameters.items():
            layer, _, wrt = name.rpartition(".")
            if layer not in operations:
                layer, wrt = "model", name
            if weight.grad is not None:
                title = f"the gradient of {name}"
                found.append(self._in_out(title, weight.grad, operations[layer], wrt))
        return found

    def _parameters(self, when: str, by: Operation) -> list[Result]:
        weights = self.parameters.items()
        return [self._in_out(name + when, weight.detach(), by, name) for name, weight in weights]

    def _in_out(self, name: str, tensor: Tensor, by: Operation, wrt: str) -> Result:
        """A weight or its gradient as (in_features, out_features), whatever the layer's layout."""
        is_out_in = self.config.function.get("layout") == "out_in" and wrt.endswith("weight")
        return Result(name, tensor.t() if is_out_in else tensor, by, wrt, is_out_in)


def pairs(a: list[Result], b: list[Result]) -> list[Pair]:
    """The results that both trainings have, two of one name."""
    others = {result.name: result for result in b}
    return [(result, others[result.name]) for result in a if result.name in others]


def equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN equals NaN, whatever dtype and device."""
    if (a.dtype, a.device) != (b.dtype, b.device):
        a, b = a.cpu().double(), b.cpu().double()
    return torch.equal(a, b) or (a.shape == b.shape and not unequal(a, b).any())


def unequal(a: Tensor, b: Tensor) -> Tensor:
    """Where two tensors of one shape hold other numbers, a mask on the CPU."""
    a, b = a.cpu(), b.cpu()
    return (a != b) & ~(a.isnan() & b.isnan())
