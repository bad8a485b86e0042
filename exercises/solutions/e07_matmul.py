"""MatMul: Z = X Y, z_nm = the sum over k of x_nk y_km.

Derivation. x_nk stands in row n of Z, in each z_nm with slope y_km. With G = dL/dZ

    dL/dx_nk = the sum over m of G_nm y_km, which is (G Y^T)_nk
    dL/dy_km = the sum over n of x_nk G_nm, which is (X^T G)_km

The shapes leave little choice: G is (N, M), and only G Y^T is (N, K), only X^T G is (K, M).
"""

import torch
from torch import Tensor

HINT = "Each gradient is one matrix product with grad_output. Let the shapes say which, and turned."


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
        return [(torch.randn(3, 3), torch.randn(3, 3)), (torch.randn(2, 3), torch.randn(3, 4))]


class NothingTransposed(MatMul):
    """The shapes fit only because these matrices are square. In each product the saved matrix is
    to be transposed: follow the indices."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output @ y, x @ grad_output


class WrongOrder(MatMul):
    """The factors stand in the wrong order, and A B is not B A. The shapes fit only because these
    matrices are square: write down the shape of each factor."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return y.t() @ grad_output, grad_output @ x.t()


class Elementwise(MatMul):
    """These are elementwise products, `*`. Every element of X stands in a whole row of Z, so its
    gradient is a sum of products, `@`."""

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x
