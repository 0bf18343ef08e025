"""Wrappers that change one thing about an environment, and formats of action texts."""

from turngym.wrappers.wrapping import WRAPPERS, Wrapping, wrap, wrapping  # isort: skip
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper

__all__ = ["WRAPPERS", "ResetResult", "StepResult", "TextWrapper", "Wrapping", "wrap", "wrapping"]
