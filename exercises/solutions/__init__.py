"""A model answer to each exercise, its derivation, and what the grader knows about it."""
