"""Answers to the exercises as a learner might type them, for tests and benchmarks/exercises.py.

Each answer is a tuple of bodies, one for each `raise NotImplementedError` of the exercise's file.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from lab import HOME

PLACE = re.compile(r"^( *)raise NotImplementedError .*\n", re.MULTILINE)

# Right answers that are not written like the solution.
RIGHT: list[tuple[str, tuple[str, ...]]] = [
    ("scale", ("return torch.full_like(grad_output, ctx.factor) * grad_output, None",)),
    ("square", ("return grad_output * x + x * grad_output",)),
    (
        "square",
        (
            """
            grad = torch.zeros_like(x)
            for index in torch.cartesian_prod(*map(torch.arange, x.shape)).reshape(-1, x.dim()):
                i = tuple(index.tolist())
                grad[i] = grad_output[i] * 2 * x[i]
            return grad
            """,
        ),
    ),
    ("product", ("grad_x = y * grad_output\ngrad_y = x * grad_output\nreturn grad_x, grad_y",)),
    ("relu", ("return grad_output * (x >= 0)",)),
    ("relu", ("grad = grad_output.clone()\ngrad[x < 0] = 0\nreturn grad",)),
    ("relu", ("return torch.where(x > 0, grad_output, 0.0)",)),
    ("relu", ("return grad_output * torch.heaviside(x, torch.full_like(x, 0.5))",)),
    ("sigmoid", ("return grad_output * (y - y**2)",)),
    (
        "numerical_gradient",
        (
            """
            gradient = torch.zeros_like(x)
            for i in range(x.numel()):
                up, down = x.clone(), x.clone()
                up.view(-1)[i] += eps
                down.view(-1)[i] -= eps
                gradient.view(-1)[i] = (function(up) - function(down)) / (2 * eps)
            return gradient
            """,
        ),
    ),
    (
        "numerical_gradient",
        (
            """
            flat = x.clone().reshape(-1)
            slopes = []
            for i in range(len(flat)):
                old = flat[i].item()
                flat[i] = old + eps
                up = function(flat.reshape(x.shape)).item()
                flat[i] = old - eps
                down = function(flat.reshape(x.shape)).item()
                flat[i] = old
                slopes.append((up - down) / 2 / eps)
            return torch.tensor(slopes, dtype=x.dtype).reshape(x.shape)
            """,
        ),
    ),
    ("row_sum", ("return grad_output[:, None] * torch.ones(ctx.shape).to(grad_output)",)),
    ("row_sum", ("return grad_output.repeat_interleave(ctx.shape[1]).reshape(ctx.shape)",)),
    (
        "row_mean",
        ("return grad_output.div(ctx.shape[1])[:, None] + grad_output.new_zeros(ctx.shape)",),
    ),
    ("add_bias", ("return grad_output.clone(), torch.einsum('nd->d', grad_output)",)),
    ("unbroadcast", ("return grad_output.sum_to_size(shape)",)),
    (
        "unbroadcast",
        (
            """
            extra = grad_output.dim() - len(shape)
            ones = [extra + i for i, size in enumerate(shape) if size == 1]
            dims = [*range(extra), *ones]
            return grad_output.sum(dims).reshape(shape) if dims else grad_output
            """,
        ),
    ),
    (
        "matmul",
        (
            """
            grad_x = torch.einsum('nm,km->nk', grad_output, y)
            return grad_x, torch.einsum('nk,nm->km', x, grad_output)
            """,
        ),
    ),
    (
        "linear",
        (
            """
            grad_x = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_output @ weight
            if ctx.needs_input_grad[1]:
                grad_weight = (x.t() @ grad_output).t()
            if ctx.needs_input_grad[2]:
                grad_bias = grad_output.sum(0)
            return grad_x, grad_weight, grad_bias
            """,
        ),
    ),
    (
        "embedding",
        (
            """
            one_hot = torch.nn.functional.one_hot(index, ctx.shape[0]).to(grad_output)
            return None, one_hot.t() @ grad_output
            """,
        ),
    ),
    (
        "embedding",
        (
            """
            grad = grad_output.new_zeros(ctx.shape)
            for n in range(len(index)):
                grad[index[n]] += grad_output[n]
            return None, grad
            """,
        ),
    ),
    (
        "row_max",
        (
            """
            mask = (x == x.max(dim=1, keepdim=True).values).to(x)
            return (grad_output / mask.sum(1))[:, None] * mask
            """,
        ),
    ),
    ("logsumexp", ("return grad_output[:, None] * torch.softmax(x, 1)",)),
    (
        "softmax",
        (
            """
            J = torch.diag_embed(y) - y[:, :, None] * y[:, None, :]
            return (grad_output[:, None, :] @ J)[:, 0]
            """,
        ),
    ),
    (
        "cross_entropy",
        (
            """
            grad = y.clone()
            grad[torch.arange(len(x)), target] -= 1
            return grad * grad_output / x.shape[0], None
            """,
        ),
    ),
    (
        "network",
        (
            """
            grad_w2 = active.t() @ grad_output
            grad_hidden = torch.where(hidden > 0, grad_output @ w2.t(), 0.0)
            grad_x = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_hidden @ w1.t()
            return grad_x, x.t() @ grad_hidden, grad_w2
            """,
        ),
    ),
    (
        "center_rows",
        (
            """
            columns = grad_output.shape[1]
            return grad_output @ (torch.eye(columns).to(grad_output) - 1 / columns)
            """,
        ),
    ),
    (
        "layer_norm",
        (
            """
            columns = x.shape[1]
            total = grad_output.sum(1, keepdim=True)
            along_y = (grad_output * y).sum(1, keepdim=True)
            return (columns * grad_output - total - y * along_y) / (columns * std)
            """,
        ),
    ),
    (
        "batch_norm",
        (
            """
            rows = len(x)
            grad_bias = grad_output.sum(0)
            grad_weight = (grad_output * normal).sum(0)
            grad_x = weight / (rows * std) * (rows * grad_output - grad_bias - normal * grad_weight)
            return grad_x, grad_weight, grad_bias
            """,
        ),
    ),
    (
        "dropout",
        ("ctx.scale = kept / (1 - p)", "return ctx.scale * grad_output, None, None"),
    ),
    (
        "dropout",
        (
            "ctx.save_for_backward(kept)\nctx.probability = p",
            """
            (kept,) = ctx.saved_tensors
            grad = torch.zeros_like(grad_output)
            grad[kept] = grad_output[kept] / (1 - ctx.probability)
            return grad, None, None
            """,
        ),
    ),
    ("several_outputs", ("return torch.where(side == 0, grad_clamped, grad_rest)",)),
    ("straight_through", ("return 1 * grad_output",)),
    (
        "in_place",
        (
            """
            ctx.positive = x > 0
            x[x <= 0] /= 10
            ctx.mark_dirty(x)
            return x
            """,
            "return grad_output * torch.where(ctx.positive, 1.0, 0.1).to(grad_output)",
        ),
    ),
    ("numpy_sort", ("return grad_output.gather(1, ctx.order.argsort(1))",)),
    (
        "numpy_sort",
        (
            """
            grad = torch.zeros_like(grad_output)
            for i, row in enumerate(ctx.order.tolist()):
                for j, place in enumerate(row):
                    grad[i, place] = grad_output[i, j]
            return grad
            """,
        ),
    ),
    (
        "second_derivative",
        ("s = 1 / (1 + torch.exp(-x))\nreturn grad_output * s * (1 + x * (1 - s))",),
    ),
    (
        "transforms",
        (
            "ctx.save_for_backward(*inputs)\nctx.save_for_forward(*inputs)",
            """
            (x,) = ctx.saved_tensors
            before = grad_output.cumsum(-1) - grad_output
            return 2 * x * (grad_output.sum(-1, keepdim=True) - before)
            """,
            "(x,) = ctx.saved_tensors\nreturn 2 * torch.cumsum(x * x_tangent, -1)",
            """
            y = SumOfSquares.apply(torch.movedim(x, in_dims[0], 0))
            return torch.movedim(y, 0, -1), y.dim() - 1
            """,
        ),
    ),
    (
        "custom_op",
        (
            "return x.new_empty(x.shape)",
            "ctx.save_for_backward(inputs[0])",
            "(x,) = ctx.saved_tensors\nreturn grad_output * x * (1 + x**2) ** -0.5",
        ),
    ),
]


def file_of(name: str, folder: Path = HOME / "exercises") -> Path:
    """The file of an exercise, by the exercise's name."""
    (file,) = folder.glob(f"e[0-9][0-9]_{name}.py")
    return file


def typed(name: str, bodies: tuple[str, ...], folder: Path) -> Path:
    """Write the exercise's file with the bodies typed in, into this folder."""
    source = file_of(name).read_text()
    for body in bodies:
        text = textwrap.dedent(body).strip("\n") + "\n"
        source = PLACE.sub(lambda m, text=text: textwrap.indent(text, m[1]), source, count=1)
    file = folder / file_of(name).name
    file.write_text(source)
    return file
