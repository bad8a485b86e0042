"""Modules: they keep parameters and state. The Functions that they use are handed to them."""

from .cubic import Cubic
from .linear import Linear, mm
from .one_function_net import OneFunctionNet
from .point import Point
from .two_layer_net import TwoLayerNet

__all__ = ["Cubic", "Linear", "OneFunctionNet", "Point", "TwoLayerNet", "mm"]
