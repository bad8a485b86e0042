"""What is fitted: inputs, targets, and the loss that fits them. Each call draws or loads it all."""

from .data import Data
from .digits import digits
from .nothing import nothing
from .random_regression import random_regression
from .sine import sine

__all__ = ["Data", "digits", "nothing", "random_regression", "sine"]
