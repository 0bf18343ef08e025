"""Mathematical problems with a Python tool."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tools.math_python.env import (
        MathPython,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.tools.math_python.env": ("MathPython",)},
    )

__all__ = ["MathPython"]
