"""Modules: they keep parameters and state. The Functions that they use are handed to them."""

from .cubic import Cubic
from .linear import Linear, mm
from .point import Point
from .two_layer_net import TwoLayerNet

__all__ = ["Cubic", "Linear", "Point", "TwoLayerNet", "mm"]
