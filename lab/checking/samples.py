"""On which inputs a Function is checked: its author's, or random ones that its forward takes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import torch

from lab.checking.users_code import Crash, users_code
from lab.errors import UserError

LARGEST_SAMPLE = 2000  # numbers; gradcheck calls forward twice for each


@dataclass(frozen=True)
class Case:
    """One Function applied to one tuple of arguments: float64 tensors on the device, and others."""

    target: Any
    args: tuple
    eps: float
    atol: float

    @property
    def floats(self) -> list[int]:
        """Positions of the arguments that can need a gradient."""
        return [i for i, arg in enumerate(self.args) if is_float(arg)]

    @property
    def names(self) -> list[str]:
        """What forward calls its arguments."""
        names = [p.name for p in parameters_of(self.target) if p.kind is not p.VAR_POSITIONAL]
        return names + [f"input {i}" for i in range(len(names), len(self.args))]

    def describe(self) -> str:
        """The arguments by name, tensors by shape: `x (2, 3), slope 0.5`."""
        said = []
        for name, arg in zip(self.names, self.args, strict=False):
            if isinstance(arg, torch.Tensor):
                said.append(f"{name} {tuple(arg.shape)}")
            else:
                said.append(f"{name} {getattr(arg, '__name__', arg)}")
        return ", ".join(said)

    def leaves(self, needed: Sequence[int] | None = None) -> list:
        """The arguments, those at `needed` (default: all floats) as leaves that need a gradient."""
        needed = self.floats if needed is None else needed
        return [
            arg.detach().requires_grad_(i in needed) if i in self.floats else arg
            for i, arg in enumerate(self.args)
        ]

    def apply(self, *args: Any) -> Any:
        """Apply the Function; to copies, if it declares that it works in place (`mark_dirty`)."""
        if _works_in_place(self.target):
            args = tuple(arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args)
        return _apply(self.target)(*args)

    def outputs(self, *args: Any) -> list[torch.Tensor]:
        """The floating-point outputs."""
        returned = self.apply(*args)
        returned = returned if isinstance(returned, tuple) else (returned,)
        return [output for output in returned if is_float(output)]


def is_float(value: Any) -> bool:
    """Whether it is a tensor that can need a gradient."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def is_function_class(target: Any) -> TypeGuard[type[torch.autograd.Function]]:
    """Whether it is a subclass of `torch.autograd.Function`, not a callable that applies one."""
    return inspect.isclass(target) and issubclass(target, torch.autograd.Function)


def _apply(target: Any) -> Callable:
    return target.apply if is_function_class(target) else target


def _works_in_place(target: Any) -> bool:
    methods = (getattr(target, name, None) for name in ("forward", "setup_context"))
    codes = [method.__code__ for method in methods if inspect.isfunction(method)]
    return any("mark_dirty" in code.co_names for code in codes)


def parameters_of(target: Any) -> list[inspect.Parameter]:
    """What forward takes from its caller: its parameters without ctx."""
    if not is_function_class(target):
        return list(inspect.signature(target).parameters.values())
    parameters = list(inspect.signature(target.forward).parameters.values())
    return parameters if has_setup_context(target) else parameters[1:]


def has_setup_context(target: Any) -> bool:
    """Whether ctx goes to a method of its own; otherwise it is forward's first argument."""
    return target.setup_context is not torch.autograd.Function.setup_context


def samples_of(target: Any, device: str) -> list[tuple]:
    """Arguments to check a Function on, one tuple a case, in float64 on the device."""
    if not hasattr(target, "sample_inputs"):
        return _default_samples(target, device)
    return declared_inputs(target.sample_inputs, "sample_inputs()", device)


def declared_inputs(method: Callable, name: str, device: str) -> list[tuple]:
    """What a Function's `sample_inputs` or `kink_inputs` returns, checked, in float64."""
    with users_code(f"in {name}"):
        declared = method()
        if (
            not isinstance(declared, list)
            or not declared
            or not all(isinstance(args, tuple) for args in declared)
        ):
            raise UserError(f"{name} must return a list of tuples, a tuple of arguments each")
        samples = [_in_float64(args, device) for args in declared]
        for args in samples:
            count = sum(arg.numel() for arg in args if is_float(arg))
            if not 0 < count <= LARGEST_SAMPLE:
                raise UserError(
                    f"{name} holds {count} floating-point numbers in one case; "
                    f"1 to {LARGEST_SAMPLE} can be checked"
                )
    return samples


def _in_float64(args: Sequence, device: str) -> tuple:
    """Detached copies: in float32 a numerical gradient with a step of 1e-6 is mostly rounding."""
    return tuple(
        arg.detach().to(device, torch.float64 if arg.is_floating_point() else arg.dtype, copy=True)
        if isinstance(arg, torch.Tensor)
        else arg
        for arg in args
    )


# What is tried on a Function that declares no samples: shapes of its first, second, third tensor.
_ROWS_AND_VECTOR = ((2, 3), (3,), (3,))
_SHAPES = (
    ((2, 3), (2, 3), (2, 3)),  # elementwise
    ((2, 3), (3, 4), (4,)),  # a matrix product
    ((2, 3), (4, 3), (4,)),  # a linear map
    ((3,), (3,), (3,)),
    ((2, 3, 4), (2, 4, 3), (2, 3, 3)),  # a batched matrix product
    ((2, 3, 4, 4), (2, 3, 2, 2), (2,)),  # images and filters
)
_DOMAINS = (
    torch.randn,
    lambda shape: torch.rand(shape) + 0.5,  # positive, for log and sqrt
    lambda shape: torch.rand(shape) + 1.5,  # over 1
    lambda shape: torch.rand(shape) * 0.8 + 0.1,  # between 0 and 1
)
_NUMBERS = {"float": 0.5, "int": 2, "bool": True}


def _default_samples(target: Any, device: str) -> list[tuple]:
    """Random tensors: the first domain and shapes that forward answers with finite numbers.

    What looks elementwise is tried on a matrix and a vector too: a gradient that must be summed
    shows there alone.
    """
    parameters = parameters_of(target)
    required = [p for p in parameters if p.default is p.empty]
    optional = [p for p in parameters if p.default is None]
    if not parameters:
        message = "forward takes no input: write forward(ctx, input), or add setup_context"
        raise Crash(UserError(message), "on random inputs", "crash")
    choices = [[*required, *optional], required] if optional else [required]
    crashes: list[Crash] = []
    for domain in _DOMAINS:
        samples = []
        for chosen in choices:
            for shapes in _SHAPES:
                args = _in_float64(_fill(chosen, domain, shapes), device)
                outputs = _finite_outputs(target, args, crashes)
                if outputs:
                    samples.append(args)
                    if _broadcasts(args, outputs[0].shape):
                        args = _in_float64(_fill(chosen, domain, _ROWS_AND_VECTOR), device)
                        samples += [args] if _finite_outputs(target, args, crashes) else []
                    break
        if samples:
            return samples
    if crashes:
        raise crashes[0]
    message = (
        "forward gives no finite floating-point number for any of the random inputs; let "
        "sample_inputs() say what it takes"
    )
    raise Crash(UserError(message), "on random inputs", "crash")


def _broadcasts(args: tuple, shape: torch.Size) -> bool:
    """Whether it looks as if several tensors met element by element."""
    shapes = [arg.shape for arg in args if is_float(arg)]
    return len(shapes) > 1 and all(given in (shape, shape[-1:]) for given in shapes)


def _finite_outputs(target: Any, args: tuple, crashes: list[Crash]) -> list[torch.Tensor]:
    try:
        with users_code("on random inputs"):
            outputs = Case(target, args, 0, 0).outputs(*args)
    except Crash as crash:
        if isinstance(crash.error, NotImplementedError):
            raise
        crashes.append(crash)
        return []
    return outputs if all(output.isfinite().all() for output in outputs) else []


def _fill(parameters: list[inspect.Parameter], domain: Callable, shapes: tuple) -> list:
    args: list[Any] = []
    following = itertools.chain(shapes, itertools.repeat(shapes[-1]))
    for parameter in parameters:
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
        if annotation in _NUMBERS:
            args.append(_NUMBERS[annotation])
        elif parameter.kind is parameter.VAR_POSITIONAL:
            args += [domain(next(following)), domain(next(following))]
        elif parameter.kind is not parameter.VAR_KEYWORD:
            shape = next(following)
            args.append(domain(shape[-1:] if parameter.name == "bias" else shape))
    return args


def flipped(case: Case) -> Case:
    """Other values from the same domain: each tensor's own, in another order."""
    args = [arg.flip(list(range(arg.dim()))) if is_float(arg) else arg for arg in case.args]
    return replace(case, args=tuple(args))


def not_contiguous(arg: torch.Tensor) -> torch.Tensor:
    """The same values, laid out in memory so that `view` refuses where it can."""
    if arg.dim() < 2:
        return torch.stack([arg, arg], -1)[..., 0]
    return arg.transpose(0, -1).contiguous().transpose(0, -1)
