"""The exercises: finding one, grading an answer, and the session at the terminal.

    exercise  which exercises there are, and which one a target or a file means
    grading   whether an answer is right, and if not, what is wrong with it
    session   what a learner sees: the overview, a report, a hint, the watch

Other wings and the commands import these modules alone; what else there is here is private.
"""

__all__ = ["exercise", "grading", "session"]
