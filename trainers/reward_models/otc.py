"""Tool efficiency: a correct answer earns more, the fewer tool calls it took (OTC, arXiv 2504.14870)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.envs.search.step_rewards import group_tool_efficiency, tool_efficiency
from turngym.errors import ConfigError
from turngym.trainers.reward_models import REWARD_MODELS
from turngym.trainers.reward_models.base.model import RewardConfig, RewardModel, require
from turngym.trainers.reward_models.base.turns import whole_turns

_FORMS = ("group", "single")


@dataclass(frozen=True)
class OTCConfig(RewardConfig):
    """Settings of ``otc``; ``weight`` is the paper's alpha."""

    tool: str = r"<search>|<tool_call>|<python>|\btool\b"
    """Regular expression that finds a tool call in an action; every turn has one call or none."""
    most_calls: int = 4
    """The paper's smoothing constant c: the most calls of an episode."""
    form: str = "group"
    """``group`` compares with the fewest calls among the correct episodes of the group, ``single`` with nothing. The
    group is all that an iteration plays of an instance: branches, continuations and greedy replays too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require("most_calls", self.most_calls, 1, 1e6)
        if self.form not in _FORMS:
            raise ConfigError(f"form must be 'group' or 'single', got {self.form!r}.")
        try:
            re.compile(self.tool)
        except re.error as error:
            raise ConfigError(f"tool must be a regular expression, got {self.tool!r}: {error}.") from error


@REWARD_MODELS.register("otc")
class OTC(RewardModel[OTCConfig]):
    """The reward of an episode, all of it at its last turn: tool efficiency times 1 if it was correct, else 0.

    >>> from turngym.agents.trajectory import EpisodeSpec, Turn
    >>> def played(calls, success):
    ...     turns = [Turn("", "", "<search>x</search>")] * calls + [Turn("", "", "<answer>y</answer>")]
    ...     return Trajectory(EpisodeSpec(0, 0), turns=turns, success=success)
    >>> rewards = OTC(OTCConfig()).rewards([played(2, 1), played(4, 1), played(0, 0)])
    >>> [round(sum(own), 6) for own in rewards]
    [1.0, 0.866025, 0.0]
    """

    name: ClassVar[str] = "otc"
    Config = OTCConfig
    replaces: ClassVar[bool] = True
    compares_groups: ClassVar[bool] = True

    def calls(self, trajectory: Trajectory) -> int:
        """Return how many tool calls an episode made, those from before it branched off too."""
        return sum(bool(re.search(self.config.tool, turn.action)) for turn in whole_turns(trajectory))

    def efficiency(self, calls: int, fewest: int) -> float:
        """Return the paper's r_tool of a correct episode.

        Args:
            calls: Its tool calls.
            fewest: Fewest calls among the correct episodes of its group.
        """
        most = self.config.most_calls
        return (
            tool_efficiency(calls, most) if self.config.form == "single" else group_tool_efficiency(calls, fewest, most)
        )

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return 0 for every turn but the last, which gets the product."""
        fewest: dict[int, int] = defaultdict(lambda: 10**9)
        for each in trajectories:
            if each.success == 1:
                fewest[each.spec.group] = min(fewest[each.spec.group], self.calls(each))
        found = []
        for each in trajectories:
            own = [0.0] * len(each.turns)
            if each.success == 1:
                own[-1] = self.efficiency(self.calls(each), fewest[each.spec.group])
            found.append(own)
        return found
