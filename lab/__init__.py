"""What the commands share: runs and curves on disk, gradient verdicts, devices, errors."""

from pathlib import Path

HOME = Path(__file__).parent.parent  # of the project
