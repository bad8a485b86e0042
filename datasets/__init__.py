"""Data sets: inputs, targets and the loss to minimise. Each function draws or loads its own."""

from .data import Data
from .digits import digits
from .nothing import nothing
from .random_regression import random_regression
from .sine import sine

__all__ = ["Data", "digits", "nothing", "random_regression", "sine"]
