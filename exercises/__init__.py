"""The course: small Functions whose backward is yours to write, from easy to hard.

Start with e01_scale.py; README.md says how the course works.
"""

# The title of each chapter, and the exercise that it starts with.
CHAPTERS: dict[str, str] = {
    "The chain rule, one element at a time": "scale",
    "Rows, sums and shapes": "row_sum",
    "The layers of a network": "matmul",
    "From scores to a whole network": "row_max",
    "Normalising and dropout": "center_rows",
    "Beyond the plain derivative": "several_outputs",
    "Working with the rest of PyTorch": "second_derivative",
}
