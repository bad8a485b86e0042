"""What a run leaves on disk, written while it trains and read back later.

run          `Run`, around the training loop
summary      `Summary`, the dataclass behind summary.json, and `Damaged`
folder       the folder of a run: its config, and what a failed job leaves there
reading      recorded runs: `find_runs`, `read_runs`, `RecordedRun`
"""

__all__ = ["folder", "reading", "run", "summary"]
