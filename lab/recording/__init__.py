"""What a run leaves on disk, written while it trains and read back later.

Other wings import the modules in `__all__`; the rest is private.
"""

__all__ = ["checkpoint", "curves", "run", "run_folder"]
