"""Measurements, one command each: speed (`benchmark.py`), a GPU (`gpu.py`), and plain scripts."""
