"""Everything that the three commands need and a learner need not read (README.md)."""

from pathlib import Path

HOME = Path(__file__).parent.parent  # of the project
