"""One `torch.autograd.Function` a file, forward beside backward.

The shipped ones are here under their own name (`functions.MyReLU`); one that you add is
reached through its file (`functions.swish.Swish`).
"""

from functions.linear import LinearFunction
from functions.linear_in_out import LinearFunctionInOut
from functions.myrelu import MyReLU

__all__ = ["LinearFunction", "LinearFunctionInOut", "MyReLU"]
