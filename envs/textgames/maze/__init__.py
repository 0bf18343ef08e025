"""Mazes."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.maze.env import (
        Maze,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.maze.env": ("Maze",)},
    )

__all__ = ["Maze"]
