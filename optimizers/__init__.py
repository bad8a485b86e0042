"""Updates written out by hand; any of `torch.optim` is a three-line file in conf/optimizer/."""

from .manual_sgd import ManualSGD

__all__ = ["ManualSGD"]
