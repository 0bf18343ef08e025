"""A wrapper that blanks pictures: what a model learns without seeing anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from turngym.wrappers.core import TextWrapper


class BlankPictures(TextWrapper):
    """Shows a grey picture of the same size in place of every picture."""

    name: ClassVar[str] = "blank_pictures"

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        if not isinstance(observation, Mapping):
            return observation
        return {**observation, "image": np.full_like(observation["image"], 128)}
