"""A model answer to each exercise, its derivation, and what the grader needs to know about it."""
