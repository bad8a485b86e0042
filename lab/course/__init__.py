"""The exercises: finding one, grading an answer, the session at the terminal, and a class.

    exercise   which exercises there are, and which one a target or a file means
    grading    a verdict on an answer, from a child process with a time limit
    session    what a learner sees: the overview, a report, a hint, the watch
    classroom  a folder of answers: marks, table, feedback

Other wings and the commands import these modules alone. Private: answers (what is wrong with an
answer; it runs in the child, and its sentences are in words.toml) and terminal (keys, colours).
"""

__all__ = ["classroom", "exercise", "grading", "session"]
