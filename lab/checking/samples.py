"""One Function and one tuple of arguments, and the arguments that its author declares."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import torch

from lab.checking.users_code import users_code
from lab.errors import UserError

LARGEST_SAMPLE = 2000  # numbers; the numerical gradient calls forward twice for each
FLOAT32_EPS, FLOAT32_TOLERANCE = 5e-3, 2e-2


@dataclass(frozen=True)
class Case:
    """One Function applied to one tuple of arguments.

    Args:
        target: the Function, or a callable that applies one.
        args: float64 tensors on the device, and anything else.
        eps: step of the finite differences.
        atol: allowed difference between backward and the numerical gradient.
        rtol: the same, in parts of the numerical gradient.
        watched: positions of the outputs that backward is asked about; None for all of floating
            point.
        passive: positions of the tensors that get no gradient, by design.
        precision: relative rounding error of what forward computes.
        symmetric: whether a matrix that is symmetric is meant to be so.
        is_guess: whether the arguments may never have been meant: if backward raises, they do not
            count.
    """

    target: Any
    args: tuple
    eps: float = 1e-6
    atol: float = 1e-5
    rtol: float = 1e-3
    watched: tuple[int, ...] | None = None
    passive: tuple[int, ...] = ()
    precision: float = 1e-15
    symmetric: bool = False
    is_guess: bool = False

    @property
    def is_precise(self) -> bool:
        """Whether forward computes in float64."""
        return self.precision < 1e-10

    @property
    def floats(self) -> list[int]:
        """Positions of the arguments that can need a gradient."""
        return [
            i for i, arg in enumerate(self.args) if can_need_grad(arg) and i not in self.passive
        ]

    @property
    def names(self) -> list[str]:
        """What forward calls its arguments."""
        names = [p.name for p in parameters_of(self.target) if p.kind is not p.VAR_POSITIONAL]
        return names + [f"input {i}" for i in range(len(names), len(self.args))]

    def describe(self) -> str:
        """The arguments by name, tensors by shape: `x (3, 5), slope 0.5`."""
        pairs = zip(self.names, self.args, strict=False)
        return ", ".join(f"{name} {_described(arg)}" for name, arg in pairs)

    def in_float32(self) -> Case:
        """The same with the real tensors in single precision, checked to that precision."""
        return replace(self, args=in_float32(self.args)).coarse()

    def coarse(self) -> Case:
        """The same, checked to the precision of float32."""
        return replace(
            self,
            eps=FLOAT32_EPS,
            atol=max(self.atol, FLOAT32_TOLERANCE),
            rtol=FLOAT32_TOLERANCE,
            precision=1e-7,
        )

    def changed(
        self, change: Callable[[torch.Tensor], torch.Tensor], positions: Iterable[int] | None = None
    ) -> Case:
        """The same with `change` of each argument at `positions` (default: all floats)."""
        args = list(self.args)
        for i in self.floats if positions is None else positions:
            args[i] = change(args[i])
        return replace(self, args=tuple(args))

    def leaves(self, needed: Sequence[int] | None = None) -> list:
        """The arguments, those at `needed` (default: all floats) as leaves that need a gradient."""
        needed = self.floats if needed is None else needed
        return [
            arg.detach().requires_grad_(i in needed) if can_need_grad(arg) else arg
            for i, arg in enumerate(self.args)
        ]

    def apply(self, *args: Any) -> tuple:
        """All that forward returns for these arguments, as a tuple."""
        with torch.random.fork_rng([]):
            returned = self._seeded(*args)
        return returned if isinstance(returned, tuple) else (returned,)

    def _seeded(self, *args: Any) -> Any:
        """What the target returns if it draws the same random numbers as in every other call."""
        torch.set_rng_state(_RANDOM_STATE)
        if any(isinstance(arg, torch.Tensor) and arg.device.type != "cpu" for arg in args):
            torch.manual_seed(0)
        return (self.target.apply if is_function_class(self.target) else self.target)(*args)

    @property
    def draws(self) -> bool:
        """Whether forward draws random numbers."""
        with torch.random.fork_rng([]):
            self._seeded(*map(copied, self.args))
            return not torch.equal(torch.get_rng_state(), _RANDOM_STATE)

    def outputs(self, *args: Any) -> list[torch.Tensor]:
        """The watched outputs for copies of these arguments, so that no edit can last."""
        returned = self.apply(*map(copied, args))
        if self.watched is None:
            return [output for output in returned if can_need_grad(output)]
        return [returned[i] for i in self.watched]

    @property
    def surrogate(self) -> Callable | None:
        """The function that backward is declared to be the derivative of, if one is."""
        declared = getattr(self.target, "surrogate", None)
        return declared if callable(declared) else None

    def truth(self, *args: Any) -> list[torch.Tensor]:
        """What backward should be the derivative of: the outputs, or the declared surrogate's."""
        if self.surrogate is None:
            return self.outputs(*args)
        with users_code("in surrogate"):
            returned = self.surrogate(*map(copied, args))
        returned = returned if isinstance(returned, tuple) else (returned,)
        return [output for output in returned if can_need_grad(output)]


_RANDOM_STATE = torch.Generator().manual_seed(0).get_state()


def _described(arg: Any) -> str:
    if not isinstance(arg, torch.Tensor):
        if isinstance(arg, torch.nn.Module):
            return type(arg).__name__
        return (getattr(arg, "__name__", None) or f"{arg}".partition("\n")[0])[:40]
    if arg.dtype == torch.float64:
        return f"{tuple(arg.shape)}"
    if not can_need_grad(arg) and arg.numel() <= 8:
        return f"{arg.tolist()}"
    return f"{tuple(arg.shape)} {arg.dtype}".replace("torch.", "")


def can_need_grad(value: Any) -> bool:
    """Whether it is a tensor that can need a gradient and that can be moved element by element."""
    return (
        isinstance(value, torch.Tensor)
        and (value.is_floating_point() or value.is_complex())
        and value.layout is torch.strided
    )


def copied(value: Any) -> Any:
    """A tensor's copy, of the same layout, through which gradients flow; all else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    clone = value.clone()
    if value.layout is not torch.strided or clone.stride() == value.stride() or 0 in value.stride():
        return clone
    return value.new_empty_strided(value.shape, value.stride()).copy_(value)


def is_function_class(target: Any) -> TypeGuard[type[torch.autograd.Function]]:
    """Whether it is a subclass of `torch.autograd.Function`, not a callable that applies one."""
    return inspect.isclass(target) and issubclass(target, torch.autograd.Function)


def parameters_of(target: Any) -> list[inspect.Parameter]:
    """What forward takes from its caller: its parameters without ctx."""
    if not is_function_class(target):
        target = getattr(target, "_init_fn", target)  # what a torch.library.custom_op wraps
        return list(inspect.signature(target).parameters.values())
    parameters = list(inspect.signature(target.forward).parameters.values())
    return parameters if has_setup_context(target) else parameters[1:]


def has_setup_context(target: Any) -> bool:
    """Whether ctx goes to a method of its own; otherwise it is forward's first argument."""
    return target.setup_context is not torch.autograd.Function.setup_context


def declared_inputs(method: Callable, name: str, device: str) -> list[tuple]:
    """What a Function's `sample_inputs` or `kink_inputs` returns, checked, in float64."""
    with users_code(f"in {name}"):
        declared = method()
        fits = isinstance(declared, list) and all(isinstance(args, tuple) for args in declared)
        if not fits or not declared:
            raise UserError(f"{name} must return a list of tuples, a tuple of arguments each")
        samples = [in_float64(args, device) for args in declared]
        for args in samples:
            count = sum(arg.numel() for arg in args if can_need_grad(arg))
            lists = [arg for arg in args if isinstance(arg, list | tuple)]
            nested = any(can_need_grad(value) for values in lists for value in values)
            if not (0 < count <= LARGEST_SAMPLE or (count == 0 and nested)):
                raise UserError(
                    f"{name} holds {count} floating-point numbers in one case; "
                    f"1 to {LARGEST_SAMPLE} can be checked"
                )
    return samples


def in_float64(args: Sequence, device: str) -> tuple:
    """Copies in double precision: in float32, a difference over a step of 1e-6 is mostly noise."""
    return tuple(_in_float64(arg, device) for arg in args)


def _in_float64(arg: Any, device: str) -> Any:
    if isinstance(arg, torch.nn.Module):
        return copy.deepcopy(arg).to(device, torch.float64)
    if isinstance(arg, list | tuple) and any(isinstance(inner, torch.Tensor) for inner in arg):
        return type(arg)(_in_float64(inner, device) for inner in arg)
    if not isinstance(arg, torch.Tensor):
        return arg
    double = torch.complex128 if arg.is_complex() else torch.float64
    is_float = arg.is_complex() or arg.is_floating_point()
    return arg.detach().to(device, double if is_float else arg.dtype, copy=True)


def in_float32(args: Sequence) -> tuple:
    """The arguments with the real tensors in single precision."""
    return tuple(
        a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
    )


def in_complex(case: Case) -> Case:
    """Complex tensors in place of the real ones: their numbers, and the same in another order."""
    reals = [i for i in case.floats if not case.args[i].is_complex()]
    return case.changed(lambda arg: torch.complex(arg, arg.flip([*range(arg.dim())])), reals)


def moved_far(case: Case, positions: Iterable[int] | None = None) -> Case:
    """Quite other values (default: of all floats), which may lie outside the domain of forward."""
    return case.changed(lambda arg: arg * 1.1 + 0.37, positions)


def flipped(case: Case) -> Case:
    """Other values from the same domain: each tensor's own, in another order."""
    every = [i for i, arg in enumerate(case.args) if can_need_grad(arg)]
    return case.changed(lambda arg: arg.flip(list(range(arg.dim()))), every)


def not_contiguous(arg: torch.Tensor) -> torch.Tensor:
    """The same values, laid out in memory so that `view` refuses where it can."""
    if arg.dim() < 2:
        return torch.stack([arg, arg], -1)[..., 0]
    return arg.transpose(0, -1).contiguous().transpose(0, -1)
