"""Environments with pictures: the observation can contain an image of the same facts as its text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

from turngym.envs.core import TextEnv
from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError

_LARGEST_SIDE = 4096


class PictureEnv(TextEnv[Any]):
    """A :class:`TextEnv` that also has an image of what the agent can know.

    With ``image=False`` it is a ``TextEnv[str]`` and renders nothing. With ``image=True`` the observation is a dict:
    ``{"text": str, "image": uint8 array [H, W, 3]}``, where ``"text"`` is the observation of the other mode. Snapshots
    contain only the text; the image is re-rendered from the state. It shows the whole current board, even if the text
    contains only what is new, and never a hidden fact. ``render_mode="rgb_array"`` gives the same picture.

    A subclass implements ``render_image`` and calls ``set_frame`` in its ``setup``.
    """

    class Options(TextEnv.Options):
        """Options of every environment with pictures."""

        image: bool = False
        """True if the observation contains the picture."""

    options: Options
    __slots__ = ("_frame",)
    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012  (as declared)

    @classmethod
    def recorded(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Omit ``image=False`` where it is the default, which keeps records without images unchanged."""
        is_told = options.get("image") is not False or cls.Options.image
        return options if is_told else {name: value for name, value in options.items() if name != "image"}

    @property
    def image(self) -> bool:
        """True if the observation contains the picture."""
        return self.options.image

    @abstractmethod
    def render_image(self) -> NDArray[np.uint8]:
        """Return a new image of what the agent can know, uint8 [H, W, 3], of the size given to ``set_frame``."""

    def set_frame(self, height: int, width: int) -> None:
        """Set the size of every image in pixels; it depends only on the options, not on the instance."""
        if not (0 < height <= _LARGEST_SIDE and 0 < width <= _LARGEST_SIDE):
            raise ConfigError(f"a picture has 1 to {_LARGEST_SIDE} pixels a side, got {height} x {width}.")
        self._frame = height, width
        if self.image:
            box = Box(0, 255, (height, width, 3), np.uint8)
            self.observation_space = Dict(text=Unicode(), image=box)
            # on this instance alone: without images a step is TextEnv's own and costs nothing more
            self.step = self._step_and_paint  # type: ignore[method-assign]

    def _with_image(self, text: str) -> dict[str, Any]:
        return {"text": text, "image": self.render_image()}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; see :meth:`TextEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        return (self._with_image(observation) if self.image else observation), info

    def _step_and_paint(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn and add the picture."""
        result = super().step(action)
        return (self._with_image(result[0]), *result[1:])

    def restore(self, snapshot: bytes) -> tuple[Any, dict[str, Any]]:
        """Restore a state saved by ``snapshot``; see :meth:`TextEnv.restore`."""
        observation, info = super().restore(snapshot)
        return (self._with_image(observation) if self.image else observation), info

    def render(self) -> str | NDArray[np.uint8] | None:  # type: ignore[override]  # pictures are what this class adds
        """Return the image as text or as an array, black before the first reset; None without a render mode."""
        if self.render_mode != "rgb_array":
            return super().render()
        return np.zeros((*self._frame, 3), np.uint8) if self._observation is None else self.render_image()
