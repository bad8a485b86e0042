"""At which step do recorded curves first differ, and by how much, and why?

selection   which of the runs on disk are compared: those of one problem
numbers     `Comparison`: rows of runs, a reference, and how each pair of runs differs
report      what compare.py and the end of a sweep print: the table, JSON or CSV
plot        the figure of a comparison
why         the cause of the first difference of two runs, found by training both again

Other wings and compare.py import the modules in `__all__`. Private are labels, which says what a
row is called, table, which serves report, and replay and causes, which serve why.
"""

__all__ = ["numbers", "plot", "report", "selection", "why"]
