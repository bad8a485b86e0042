"""At which step do recorded curves first differ, and by how much?

    numbers     the comparison itself: `compare` gives rows, a reference and their differences
    labels      what differs between runs, which is what a row and a curve are called
    table       the comparison as text, JSON and CSV
    picture     the comparison as a picture
    why         the cause of the first difference of two runs, found by training both again

Other wings and compare.py import the modules in `__all__`; labels, replay and causes are private.
"""

__all__ = ["numbers", "picture", "table", "why"]
