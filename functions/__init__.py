"""One `torch.autograd.Function` in each file, with forward and backward next to each other.

Import a shipped Function from here (`functions.MyReLU`), and one of your own from its file
(`functions.swish.Swish`).
"""

from functions.black_box import BlackBox
from functions.borrowed_gradient import BorrowedGradient
from functions.legendre_polynomial3 import LegendrePolynomial3
from functions.linear import LinearFunction
from functions.linear_in_out import LinearFunctionInOut
from functions.myrelu import MyReLU
from functions.numpy_softplus import NumpySoftplus
from functions.sign_ste import SignSTE
from functions.sqrt_reciprocal_square import SqrtReciprocalSquare
from functions.sum_sqrt import SumSqrt
from functions.template import Template

__all__ = [
    "BlackBox",
    "BorrowedGradient",
    "LegendrePolynomial3",
    "LinearFunction",
    "LinearFunctionInOut",
    "MyReLU",
    "NumpySoftplus",
    "SignSTE",
    "SqrtReciprocalSquare",
    "SumSqrt",
    "Template",
]
