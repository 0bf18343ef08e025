"""Rewards captions by labels that a model gives them (ONI, Zheng et al. 2024, arXiv 2410.23022)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper
from turngym.wrappers.observation import text_of
from turngym.wrappers.rewards.caption_labels import LONGEST, Labeller, shared_labels

_LINES = r"^.*\S.*$"
_MOST = 64
_LARGEST_POWER = 100


@WRAPPERS.register("caption_reward")
class CaptionReward(TextWrapper):
    """Adds ``scale * label / n ** power`` for each caption in an observation, seen for the n-th time in the episode.

    Captions are the pieces of the observation's text that match ``pattern``, such as the messages of a game. A labeller
    gives each caption a number once, for all episodes; until then it adds nothing. It works in the background, so the
    environment never waits for it, and which turn has the first reward of a caption depends on time. With ``wait`` a
    new caption is labelled before the turn ends: episodes repeat if the labeller does. This is ONI's reward by
    retrieval, with the exponent of Motif (arXiv 2310.00166); ONI's classifier and ranking model are not built.

    What the environment says to an invalid action has no captions: it may quote the action, so that the agent could
    write captions itself.

    What the labeller raises is counted (``labels.faults``, and in the file), and the caption stays unlabelled; after
    three failures it is not asked about again. Columns of a turn are the reward that was added (``reward/captions``),
    its sum in the episode and the share of captions that had a label (``outcome/caption_reward``,
    ``outcome/captions_labelled``, which evaluations report).

    Args:
        env: The environment.
        labels: File that keeps the labels; it may exist. Empty keeps them in memory, for as long as a wrapper uses
            them.
        labeller: ``module:name`` or ``path/to/file.py:name`` of a function from a list of captions to a list of
            numbers, with None for those it cannot label, or the function itself. Empty uses the labels of the file
            only. ``turngym.agents.captions:ModelLabeller`` asks a language model.
        labeller_options: Arguments for a class or function that makes the labeller, such as ``{"model": "hf:PATH"}``.
        pattern: Regular expression of captions, with ``^`` and ``$`` for lines; its first group is the caption, if it
            has one. By default each line is one.
        scale: Factor of the labels.
        power: Exponent of the count; 0 rewards every time, None only the first time in an episode.
        wait: Label new captions at once, so that episodes repeat.

    Raises:
        ConfigError: The pattern is not a regular expression, or the file holds something else.

    >>> import gymnasium, turngym
    >>> count = lambda captions: [float(caption == "higher") for caption in captions]
    >>> env = CaptionReward(gymnasium.make("turngym/GuessTheNumber-v0"), labeller=count, wait=True)
    >>> _ = env.reset(seed=1)
    >>> [round(env.step("2")[1], 3) for _ in range(3)]
    [1.0, 0.125, 0.037]
    """

    file_options = worded()

    name: ClassVar[str] = "caption_reward"
    unchecked: ClassVar[frozenset[str]] = frozenset({"labels", "labeller", "labeller_options", "wait"})

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        labels: str = "",
        labeller: str | Labeller = "",
        labeller_options: Mapping[str, Any] | None = None,
        pattern: str = "",
        scale: float = 1.0,
        power: float | None = 3.0,
        wait: bool = False,
    ) -> None:
        super().__init__(env)
        self.require("scale", scale, -1e6, 1e6)
        if power is not None:
            self.require("power", power, 0, _LARGEST_POWER)
        for option, value, kind in (("labels", labels, str), ("pattern", pattern, str), ("wait", wait, bool)):
            if not isinstance(value, kind):
                raise ConfigError(f"{option} of the wrapper {self.name} must be a {kind.__name__}, got {value!r}.")
        if not isinstance(labeller_options, Mapping | None):
            raise ConfigError(f"labeller_options of {self.name} must be a JSON object, got {labeller_options!r}.")
        try:
            self._pattern = re.compile(pattern or _LINES, re.MULTILINE)
        except re.error as error:
            raise ConfigError(
                f"pattern of {self.name} is not a regular expression, got {pattern!r} ({error})."
            ) from error
        self.scale, self.power, self.wait = scale, power, wait
        self.labels = shared_labels(labels, labeller, labeller_options or {})
        self._is_active = bool(labels or labeller)

    def initial_state(self) -> dict[str, Any]:
        return {"counts": {}, "added": 0.0, "sum": 0.0, "seen": 0, "labelled": 0}

    def on_reset(self, result: ResetResult) -> None:
        self._see(text_of(result.observation))

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        added = self._see(text_of(step.observation)) if step.info.get("action_is_valid", True) else 0.0
        self.state["added"] = added
        self.state["sum"] += added
        return step.reward + added, False

    def _see(self, text: str) -> float:
        """Count the captions of a text, and return their reward."""
        if not self._is_active:
            return 0.0
        captions = dict.fromkeys(self._captions(text))
        unknown = [each for each in captions if each not in self.labels.known]
        if unknown and self.wait:
            self.labels.label(unknown)
        elif unknown:
            self.labels.request(unknown)
        added, counts = 0.0, self.state["counts"]
        for caption in captions:
            key = hashlib.blake2b(caption.encode("utf8", "surrogatepass"), digest_size=8).hexdigest()
            count = counts[key] = counts.get(key, 0) + 1
            label = self.labels.known.get(caption)
            self.state["seen"] += 1
            if label is not None:
                self.state["labelled"] += 1
                added += self.scale * label * self._share(count)
        return added

    def _share(self, count: int) -> float:
        """Return the part of a label that the ``count``-th sight of its caption is worth."""
        return float(count == 1) if self.power is None else float(count) ** -self.power

    def _captions(self, text: str) -> Iterator[str]:
        for number, match in enumerate(self._pattern.finditer(text)):
            if number == _MOST:
                return
            if caption := (match[1] or "" if self._pattern.groups else match[0]).strip()[:LONGEST]:
                yield caption

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        if self._is_active:
            state = self.state
            info["columns"] = {
                **info.get("columns", {}),
                "reward/captions": state["added"],
                "outcome/caption_reward": state["sum"],
                "outcome/captions_labelled": state["labelled"] / max(state["seen"], 1),
            }
        return observation

    def close(self) -> None:
        """Write new labels to the file, and close the environment."""
        self.labels.flush()
        super().close()
