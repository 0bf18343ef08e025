"""Wrappers that change one thing about an environment, and the formats that action texts are written in."""

from turngym.wrappers.wrapping import WRAPPERS, Wrapping, wrap, wrapping

__all__ = ["WRAPPERS", "Wrapping", "wrap", "wrapping"]
