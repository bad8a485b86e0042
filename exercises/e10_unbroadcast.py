"""Exercise 10, unbroadcast: the gradient of an input that was broadcast. Write the function.

In exercise 9 forward repeated b along the rows, and backward summed over them. This function does
the same for any two shapes. To compute x + b, PyTorch lines up the two shapes at their last
dimension. It then repeats b along each dimension that b lacks, and along each in which b has
size 1:

    shape of grad_output   (2, 4, 3)
    shape of b                (4, 1)    the gradient of b: sum over the first and the last dimension

    grad_output   dL/dy, of the shape after broadcasting
    shape         the shape of the input before broadcasting, a tuple of integers; it may be ()
    you return    dL/db, a tensor of exactly that shape

The check calls your function in float64, as it calls every backward of this course.

Check it:   python check.py exercises.unbroadcast
            add --hint for a hint (twice for more), or --watch to check at every save
"""

import torch
from torch import Tensor


def unbroadcast(grad_output: Tensor, shape: tuple[int, ...]) -> Tensor:
    raise NotImplementedError  # your answer goes in place of this line
