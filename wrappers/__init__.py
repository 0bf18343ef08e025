"""Wrappers that change one thing about an environment, and the formats that action texts are written in."""

from turngym.wrappers.wrapping import WRAPPERS, Wrapping, wrap, wrapping  # isort: skip
from turngym.wrappers.core import Begun, Played, TextWrapper

__all__ = ["WRAPPERS", "Begun", "Played", "TextWrapper", "Wrapping", "wrap", "wrapping"]
