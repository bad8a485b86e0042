"""What the commands share: runs and curves on disk, gradient verdicts, devices, errors."""
