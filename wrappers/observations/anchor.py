"""Exact, normalised or similar anchors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError, nearest
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper
from turngym.wrappers.observation import text_of

MODES = ("exact", "normalised", "similarity")
SOURCES = ("anchor", "observation")

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def normalised(text: str, *, numbers: bool = False) -> str:
    r"""Return a text without case, superfluous white space and, optionally, the values of numbers.

    >>> normalised("Box at\t3,  wall at 12 \n"), normalised("Box at 3", numbers=True)
    ('box at 3, wall at 12', 'box at #')
    """
    plain = " ".join(text.casefold().split())
    return _NUMBER.sub("#", plain) if numbers else plain


def similar(text: str, earlier: Sequence[str], threshold: float) -> int | None:
    """Return the index of the first earlier text that is similar enough; None without one.

    Similarity is ``difflib.SequenceMatcher(None, one, text, autojunk=False).ratio()``: twice the number of characters
    in matching blocks over the length of both texts.

    >>> similar("the box is at 3", ["a wall", "the box is at 2"], 0.9)
    1
    """
    matcher = SequenceMatcher(None, "", text, autojunk=False)  # the second text is prepared once
    bounds = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)  # cheap upper bounds reject most pairs
    for position, one in enumerate(earlier):
        matcher.set_seq1(one)
        if one == text or all(bound() >= threshold for bound in bounds):
            return position
    return None


def cluster(texts: Sequence[str], threshold: float) -> list[int]:
    """Return, for each text, the index of its representative: the first text that is similar enough.

    This is the similarity grouping of GiGPO (Feng et al. 2025): each text joins the first cluster whose first member is
    similar enough, or starts a new one. Applied to the anchors of all turns of a group, in the order of the table, it
    gives turns of different episodes a common key, which a wrapper of a single environment cannot do.

    Args:
        texts: Anchors, in a fixed order; another order may give other clusters.
        threshold: Minimum similarity to the first member, in (0, 1]; 1 only groups equal texts.

    >>> cluster(["a red box", "a wall", "a red fox", "a red box"], 0.8)
    [0, 1, 0, 0]
    """
    firsts: list[int] = []
    known: dict[str, int] = {}
    for position, text in enumerate(texts):
        if text not in known:
            found = similar(text, [texts[first] for first in firsts], threshold)
            if found is None:
                firsts.append(position)
            known[text] = position if found is None else firsts[found]
    return [known[text] for text in texts]


@WRAPPERS.register("anchor")
class Anchor(TextWrapper):
    """Coarsens the anchor: states that differ only in form, or are similar, have equal anchors.

    With ``"similarity"``, a turn gets the anchor of the first state of the same episode that is similar enough. The
    result depends only on this episode; to compare turns across episodes, keep exact anchors and pass all of them to
    :func:`cluster`.

    Args:
        env: The environment.
        mode: ``"exact"``, ``"normalised"`` (ignores case and white space) or ``"similarity"``.
        source: ``"anchor"``, or ``"observation"`` for the text of the observation, as in some papers; text that changes
            every turn then separates equal states.
        threshold: Minimum similarity, in (0, 1].
        numbers: Also ignore the values of numbers, in mode ``"normalised"``.

    >>> import gymnasium, turngym
    >>> env = Anchor(gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=10), numbers=True)
    >>> env.reset(seed=0)[1]["anchor"]
    'from # to #'
    """

    file_options = worded("mode", "source")

    name: ClassVar[str] = "anchor"

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        mode: str = "normalised",
        source: str = "anchor",
        threshold: float = 0.95,
        numbers: bool = False,
    ) -> None:
        super().__init__(env)
        for option, value, known in (("mode", mode, MODES), ("source", source, SOURCES)):
            if value not in known:
                raise ConfigError(f"the wrapper anchor has no {option} {value!r}. {nearest(str(value), known)}")
        self.require("threshold", threshold, 1e-9, 1)
        self.mode = mode
        self.source = source
        self.threshold = threshold
        self.numbers = numbers

    def initial_state(self) -> dict[str, Any]:
        return {"firsts": [], "now": 0}

    def on_reset(self, result: ResetResult) -> None:
        self._assign(result.observation, result.info)

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        self._assign(step.observation, step.info)
        return step.reward, False

    def _assign(self, observation: Any, info: dict[str, Any]) -> None:
        """Find the cluster of the current state."""
        if self.mode != "similarity":
            return
        text, firsts = self._text(observation, info), self.state["firsts"]
        found = similar(text, firsts, self.threshold)
        if found is None:
            firsts.append(text)
        self.state["now"] = len(firsts) - 1 if found is None else found

    def _text(self, observation: Any, info: dict[str, Any]) -> str:
        return text_of(observation) if self.source == "observation" else str(info["anchor"])

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        if self.mode == "similarity":
            info["anchor"] = self.state["firsts"][self.state["now"]]
        else:
            text = self._text(observation, info)
            info["anchor"] = normalised(text, numbers=self.numbers) if self.mode == "normalised" else text
        return observation
