"""The speed table of the README, one command: `python benchmarks/benchmark.py`."""
