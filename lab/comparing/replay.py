"""A recorded training, rebuilt from its summary and stepped again, with every tensor named."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
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

# A model that has layers of these names calls them in this order.
LAYERS = ("linear1", "activation", "linear2")
NOTHING = torch.empty(0)


@dataclass
class Operation:
    """What a layer, the whole model, the loss or the optimizer did in one step.

    Attributes:
        call: input -> output; a layer finds its parameters itself.
        input, grad_output: copies, as the next layer may work in place, and so may a backward;
            empty if the operation has none.
        nodes: those that it added to the graph, the one of its output first.
    """

    name: str
    call: Callable[[Tensor], Tensor] = torch.clone
    input: Tensor = NOTHING
    nodes: tuple[Node, ...] = ()
    grad_output: Tensor = NOTHING

    def keep(self, grad_output: Tensor) -> None:
        """Copy the gradient that backward passes to this operation."""
        self.grad_output = grad_output.clone()


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

    def again(
        self, dtype: str, device: str, threads: int, given: Operation | None = None
    ) -> Tensor:
        """Compute the tensor again with other settings, from the numbers given to an operation."""
        torch.set_num_threads(threads)
        given, call, to = given or self.operation, self.operation.call, (device, DTYPES[dtype])
        parameters: dict[str, Tensor] = {}
        if isinstance(call, nn.Module):
            call = copy.deepcopy(call).to(*to)
            parameters.update(call.named_parameters())
        parameters["input"] = given.input.to(*to).requires_grad_()
        output = call(parameters["input"].clone())  # it may work in place
        if self.wrt == "output":
            return output.detach()
        (grad,) = torch.autograd.grad(output, parameters[self.wrt], given.grad_output.to(*to))
        return grad.t() if self.transposed else grad


class Training:
    """One recorded run, ready to be trained again.

    Args:
        run: to rebuild from its summary.
        steps: to train.
        by_layer: whether to record each layer of the model, where it has those of `LAYERS`.

    Attributes:
        machine: what it computes with, as arguments of `Result.again`.
        results: of the last stage, in program order.
        step, loss: of the last forward.
        before: the parameters before its update.
        mismatch: where the replay first gave another loss than the recorded one; "" so far.

    Raises:
        UserError: a part of the run can't be made, or its summary does not say which parts it had.
    """

    def __init__(self, run: RecordedRun, steps: int, by_layer: bool) -> None:
        if not isinstance(run.summary.config.get("model"), dict):
            raise UserError("its summary does not say what it was made of")
        if not len(run.steps):
            reason = run.summary.error or run.summary.status
            raise UserError(f"it did not complete a step: {reason}")
        self.config = recorded_config(run.folder)
        self.data, self.model, self.optimizer = make_parts(self.config)
        self.parameters = dict(self.model.named_parameters())
        weights = self.parameters.values()
        self.machine: dict[str, Any] = {
            "dtype": self.config.dtype,
            "device": str(next(self.model.parameters()).device),
            "threads": run.summary.threads or threads_for(self.config, self.data, weights),
        }
        self.calls: dict[str, Any] = {"model": self.model}
        if by_layer and all(hasattr(self.model, name) for name in LAYERS):
            self.calls = {name: getattr(self.model, name) for name in LAYERS}
        self.calls["loss"] = self._loss
        self.step, self.loss, self.mismatch = 0, math.nan, ""
        self.results: list[Result] = []
        self.before: dict[str, Tensor] = {}
        self._recorded = dict(zip(run.steps.tolist(), run.losses.tolist(), strict=True))
        self._stages = self._train(steps)
        self._random_state = torch.get_rng_state()

    def advance(self) -> str | None:
        """Train up to the next stage: "start", then "backward" and "update" of each step; or None.

        Two trainings take turns, so each continues with threads and random numbers of its own.
        """
        torch.set_num_threads(self.machine["threads"])
        torch.set_rng_state(self._random_state)
        stage = next(self._stages, None)
        self._random_state = torch.get_rng_state()
        return stage

    def _train(self, steps: int) -> Iterator[str]:
        data, start = {"x": self.data.x, "y": self.data.y}, Operation("start")
        self.results = [Result(name, x, start) for name, x in data.items() if x is not None]
        self.results += self._parameters("", start)
        yield "start"
        for step in range(steps):
            self.step = step
            self.before = {name: w.detach().clone() for name, w in self.parameters.items()}
            self._forward_and_backward()
            yield "backward"
            self.optimizer.step()
            self.results = self._parameters(" after the update", Operation("optimizer"))
            yield "update"

    def _forward_and_backward(self) -> None:
        value, operation = NOTHING if self.data.x is None else self.data.x, Operation("data")
        self.results = []
        for name, call in self.calls.items():
            before, operation = operation, Operation(name, call, value.detach().clone())
            value = call(value)
            operation.nodes = nodes_between(value.grad_fn, before.nodes)
            title = "the loss" if name == "loss" else f"the output of {name}"
            self.results.append(Result(title, value.detach().clone(), operation, "output"))
            if value.requires_grad:
                value.register_hook(operation.keep)
        self.optimizer.zero_grad()
        value.backward()
        self.loss = value.item()
        recorded = self._recorded.get(self.step, self.loss)
        if not self.mismatch and repr(recorded) != repr(self.loss):
            self.mismatch = f"step {self.step} gives {self.loss!r} instead of {recorded!r}"
        self.results += self._gradients([result.operation for result in self.results])

    def _loss(self, output: Tensor) -> Tensor:
        return self.data.loss(output, self.data.to(output.device, output.dtype).y)

    def _gradients(self, operations: list[Operation]) -> list[Result]:
        found = [
            Result(f"the gradient of the output of {one.name}", one.grad_output, after, "input")
            for one, after in reversed([*pairwise(operations)])
            if one.grad_output is not NOTHING
        ]
        by_name = {operation.name: operation for operation in operations}
        for name, weight in self.parameters.items():
            layer, _, wrt = name.rpartition(".") if "model" not in by_name else ("model", "", name)
            if weight.grad is not None:
                title = f"the gradient of {name}"
                found.append(self._in_out(title, weight.grad, by_name[layer], wrt))
        return found

    def _parameters(self, when: str, by: Operation) -> list[Result]:
        weights = self.parameters.items()
        return [self._in_out(name + when, weight.detach(), by, name) for name, weight in weights]

    def _in_out(self, name: str, tensor: Tensor, by: Operation, wrt: str) -> Result:
        """A weight or its gradient as (in_features, out_features), whatever the layer's layout."""
        is_out_in = self.config.function.get("layout") == "out_in" and wrt.endswith("weight")
        return Result(name, tensor.t() if is_out_in else tensor, by, wrt, is_out_in)


def pairs(a: Training, b: Training) -> list[tuple[Result, Result]]:
    """The results that both trainings have at this stage, two of one name."""
    others = {result.name: result for result in b.results}
    return [(result, others[result.name]) for result in a.results if result.name in others]


def equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN equals NaN, whatever dtype and device."""
    return a.shape == b.shape and not unequal(a, b).any()


def unequal(a: Tensor, b: Tensor) -> Tensor:
    """Where two tensors of one shape hold other numbers, a mask on the CPU."""
    a, b = a.cpu(), b.cpu()
    return (a != b) & ~(a.isnan() & b.isnan())
