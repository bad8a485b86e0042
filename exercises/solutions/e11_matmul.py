"""MatMul: Z = X Y, z_nm = the sum over k of x_nk y_km.

Derivation. x_nk is part of row n of Z, of each z_nm with slope y_km. With G = dL/dZ

    dL/dx_nk = the sum over m of G_nm y_km, which is (G Y^T)_nk
    dL/dy_km = the sum over n of x_nk G_nm, which is (X^T G)_km

The shapes leave little choice: G is (N, M), and only G Y^T is (N, K), only X^T G is (K, M).
"""

import torch
from torch import Tensor

HINTS = (
    "Each gradient is one matrix product with grad_output. Let the shapes tell you which operand "
    "to transpose, and the order of the two.",
    "`return grad_output @ ..., ... @ grad_output`. `.t()` transposes a matrix.",
)


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output @ y.t(), x.t() @ grad_output

    @staticmethod
    def sample_inputs() -> list[tuple]:
        # Square ones first: there the shapes don't give the answer away.
        return [
            (torch.randn(3, 3), torch.randn(3, 3)),
            (torch.randn(2, 3), torch.randn(3, 4)),
            (torch.randn(1, 3), torch.randn(3, 1)),
        ]


class NothingTransposed(MatMul):
    """The shapes fit only where the matrices are square. In each product the saved matrix must be
    transposed: follow the indices."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output @ y, x @ grad_output


class YNotTransposed(MatMul):
    """The gradient of y is right. In that of x the matrix y must be transposed; without that the
    shapes fit only where y is square."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output @ y, x.t() @ grad_output


class XNotTransposed(MatMul):
    """The gradient of x is right. In that of y the matrix x must be transposed; without that the
    shapes fit only where x is square."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output @ y.t(), x @ grad_output


class WrongOrder(MatMul):
    """The factors of each product are in the wrong order, and A B is not B A. The shapes fit only
    where the matrices are square: write down the shape of each factor."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return y.t() @ grad_output, grad_output @ x.t()


class Elementwise(MatMul):
    """These are elementwise products, `*`. Every element of X affects a whole row of Z, so its
    gradient is a sum of products: use `@`, and transpose the saved matrix."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x
