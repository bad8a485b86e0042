"""At which step do recorded curves first differ, and by how much?

selection   which of the runs on disk are compared: those of one problem
numbers     `compare`: rows of runs, a reference, and how each pair of runs differs
table       the comparison as text
records     the comparison as JSON and CSV
picture     the comparison as a picture
report      what compare.py and the end of a sweep print

`labels` is private: what sets a row apart from the others, which is what it is called.
"""

__all__ = ["numbers", "picture", "records", "report", "selection", "table"]
