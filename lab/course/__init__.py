"""The exercises: finding one, grading an answer, and the session at the terminal.

Other wings import the modules in `__all__`; the rest is private.
"""

__all__ = ["exercises"]
