"""What Hydra needs around a training, from the command line to the exit code.

command_line  around Hydra's main: errors as messages, and what Hydra refuses in words that help
compose       a config without a command line, for a notebook or a script
job           one job: config, folder, report, exit code
names         the names of run and sweep folders
slurm         the jobs of a sweep on a cluster (called by hydra_plugins/lab_slurm.py)
sweep         the start and the end of a sweep (named in conf/config.yaml)
"""

__all__ = ["command_line", "compose", "job", "names", "slurm", "sweep"]
