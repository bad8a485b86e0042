"""Modules: they hold the parameters. The Functions that they use are arguments."""

from .cubic import Cubic
from .linear import Linear, mm
from .one_function_net import OneFunctionNet
from .point import Point
from .two_layer_net import TwoLayerNet

__all__ = ["Cubic", "Linear", "OneFunctionNet", "Point", "TwoLayerNet", "mm"]
