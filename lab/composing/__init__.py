"""What Hydra needs around a training: the rules of the config, one job, the end of a sweep.

Other wings import the modules in `__all__`; the rest is private.
"""

__all__ = ["command_line", "config", "names", "sweep"]
