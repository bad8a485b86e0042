"""Updates written out by hand. For one of `torch.optim`, add a file to conf/optimizer/."""

from .manual_sgd import ManualSGD

__all__ = ["ManualSGD"]
