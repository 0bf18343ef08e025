"""iGRPO: GRPO on answers that start from the best of earlier drafts (arXiv 2602.09000).

Iterative group-relative policy optimisation. Every instance is played twice as often: first drafts, of which the best
of each group is kept and nothing is learnt, then as many episodes that are shown it. GRPO trains on the second ones,
behind the prompts with the draft.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Normalisation, Rollout
from turngym.trainers.core.columns import with_columns
from turngym.trainers.core.turn_table import TurnTable, usable


@dataclass(frozen=True)
class IGRPOConfig(GroupConfig):
    """Settings of iGRPO."""

    normalisation: Normalisation = "trajectory"
    """Over what the policy loss is averaged: the tokens of an episode, then the episodes."""
    kl_coef: float = 0.04
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    words: str = "An earlier attempt, with a return of {return}:"
    """Text before the draft; ``{return}`` stands for its return."""
    longest: int = 4000
    """Characters of a draft, after which it is cut."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("longest", self.longest, 1)


def draft_of(episode: Trajectory, config: IGRPOConfig) -> str:
    """Return an episode as a note: its return, and what was observed and answered.

    >>> from turngym.agents.trajectory import EpisodeSpec, Turn
    >>> turns = [Turn("wall north", "", "east", reward=1.0)]
    >>> print(draft_of(Trajectory(EpisodeSpec(0, 0), turns=turns), IGRPOConfig()))
    An earlier attempt, with a return of 1:
    wall north
    east
    """
    said = "\n".join(f"{turn.observation}\n{turn.completion or turn.action}" for turn in episode.turns)
    return f"{config.words.replace('{return}', f'{episode.reward_sum:g}')}\n{said[: config.longest]}"


@ALGORITHMS.register("igrpo")
class IGRPO(OutcomeMethod[IGRPOConfig]):
    """Group-relative policy optimisation of episodes that are shown the best of earlier ones."""

    Config: ClassVar[type[IGRPOConfig]] = IGRPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, episodes with notes, and what the loss needs."""
        return super().needs | {Need.NOTES}

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather drafts, then the episodes that are shown the best draft of their group."""
        drafts = rollout()
        best: dict[int, Trajectory] = {}
        for each in usable(drafts):
            group = each.spec.group
            if group not in best or each.reward_sum > best[group].reward_sum:
                best[group] = each
        notes = {group: draft_of(each, self.config) for group, each in best.items()}
        refined = rollout(notes=[notes.get(each.spec.group, "") for each in drafts])
        scores = {group: each.reward_sum for group, each in best.items()}
        return [with_columns(each, {"draft_return": scores.get(each.spec.group, math.nan)}) for each in refined]

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group."""
        credit = group_credit(table, episode_advantages(table, self.config, scale_by_std=True), self.config)
        drafts = table.numbers("episode", "draft_return")
        known = drafts[~drafts.isnan()]
        metrics = {"draft_return": float(known.mean()) if len(known) else 0.0}
        return replace(credit, metrics={**credit.metrics, **metrics})
