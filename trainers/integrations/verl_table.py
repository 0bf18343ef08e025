"""The turn table of a batch of verl, and its way back to verl's padded tensors. It imports nothing of verl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.arithmetic import float_sum
from turngym.errors import ConfigError
from turngym.trainers.core.turn_table import TurnTable, turn_table

_ROUNDING = 1e-5
"""Differences of a return below this come from float32."""


def turn_ids(mask: Tensor) -> Tensor:
    """Return the number of each sampled token's turn, -1 elsewhere: turns are runs of sampled tokens.

    >>> turn_ids(torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0]]))
    tensor([[ 0,  0, -1,  1],
            [ 2, -1, -1, -1]])
    """
    sampled = mask.bool()
    before = torch.zeros_like(sampled)
    before[:, 1:] = sampled[:, :-1]
    begins = (sampled & ~before).flatten().long()
    return torch.where(sampled, begins.cumsum(0).view(mask.shape) - 1, -torch.ones_like(mask, dtype=torch.long))


class Columns:
    """A batch of verl, read as turns.

    Rows without a sampled token, such as those of faulted episodes, are not in the table, and get no advantage.

    Args:
        rewards: ``token_level_rewards``.
        mask: ``response_mask``.
        groups: ``uid`` of each row; None for one group.
        tensors: The batch's tensors, as far as they are known: ``values``, ``old_log_probs``, ``ref_log_prob``.
        columns: Its other columns, as far as they are known: those of turngym's agent loop.
    """

    def __init__(
        self, rewards: Tensor, mask: Tensor, groups: Any, tensors: Mapping[str, Any], columns: Mapping[str, Any]
    ) -> None:
        self.rewards, self.mask = rewards, mask.bool()
        self.groups = ["" for _ in mask] if groups is None else [str(group) for group in groups]
        self.tensors = {name: tensors[name] for name in _TENSORS if name in tensors.keys()}  # noqa: SIM118
        self.columns = columns
        self.rows = [row for row in range(len(mask)) if bool(self.mask[row].any()) and not self._flag("faulted", row)]

    @property
    def has_anchors(self) -> bool:
        """True if the states that turns start from are known."""
        return "turn_anchors" in self.columns

    def _flag(self, name: str, row: int) -> bool:
        return bool(self.columns[name][row]) if name in self.columns else False

    def _of_turns(self, name: str, row: int, default: Any, count: int) -> Sequence[Any]:
        """Return a column over the turns of a row.

        Raises:
            ConfigError: It is not about these turns.
        """
        if name not in self.columns:
            return [default] * count
        found = list(self.columns[name][row])
        if len(found) != count:
            raise ConfigError(
                f"the row {row} of the batch has {count} runs of sampled tokens and {len(found)} {name}: play with "
                "turngym's agent loop, which writes both."
            )
        return found

    def _spans(self, row: int) -> list[tuple[int, int]]:
        """Return where the turns of a row start and end."""
        ids = turn_ids(self.mask[row : row + 1])[0]
        starts = [int(torch.nonzero(ids == turn)[0]) for turn in range(int(ids.max()) + 1)]
        return [(start, start + int((ids == turn).sum())) for turn, start in enumerate(starts)]

    def _turn_rewards(self, row: int, spans: Sequence[tuple[int, int]]) -> list[float]:
        """Return the reward of each turn: that of its tokens and of those before the next turn.

        verl puts an episode's return at its last token. Where the loop has told what each turn earned, that takes its
        place; what other parts of verl added, such as a penalty for divergence, stays.
        """
        given = self.rewards[row].double()
        ends = [*(start for start, _ in spans[1:]), len(given)]
        found = [float(given[start:end].sum()) for (start, _), end in zip(spans, ends, strict=True)]
        if "turn_scores" not in self.columns:
            return found
        known = [float(each) for each in self._of_turns("turn_scores", row, 0.0, len(spans))]
        found[-1] -= float_sum(known)
        rest = [0.0 if abs(each) < _ROUNDING else each for each in found]
        return [one + other for one, other in zip(known, rest, strict=True)]

    def _trajectory(self, row: int, group: int) -> Trajectory:
        spans = self._spans(row)
        rewards = self._turn_rewards(row, spans)
        anchors = self._of_turns("turn_anchors", row, "", len(spans))
        valid = self._of_turns("turn_valid", row, True, len(spans))
        old = self.tensors.get("old_log_probs", self.tensors.get("rollout_log_probs", torch.zeros_like(self.rewards)))
        turns = [
            Turn(
                "",
                str(anchors[k]),
                "",
                completion_ids=tuple(range(start, end)),
                logprobs=tuple(old[row, start:end].tolist()),
                reward=rewards[k],
                action_is_valid=bool(valid[k]),
            )
            for k, (start, end) in enumerate(spans)
        ]
        truncated = self._flag("truncated", row)
        return Trajectory(EpisodeSpec(row, 0, group), turns=turns, terminated=not truncated, truncated=truncated)

    def table(self) -> TurnTable:
        """Return the turn table of the rows that can be trained on, with a critic's values if there are some."""
        numbers: dict[str, int] = {}
        groups = [numbers.setdefault(self.groups[row], len(numbers)) for row in self.rows]
        table = turn_table([self._trajectory(row, group) for row, group in zip(self.rows, groups, strict=True)])
        if "ref_log_prob" in self.tensors:
            reference = self.tensors["ref_log_prob"][self._sampled()].double()
            table = replace(table, token_reference_logprob=reference)
        if "values" not in self.tensors:
            return table
        tokens = self.tensors["values"][self._sampled()].double()
        firsts = tokens[table.first_tokens()]  # every turn here has a token
        lasts = torch.cumsum(table.turns_per_episode, 0) - 1
        final = torch.where(table.episode_sum(table.terminated.double()) > 0, torch.zeros(len(lasts)), firsts[lasts])
        return table.with_values(firsts, tokens, final.double())

    def _sampled(self) -> Tensor:
        """Return which tokens are those of the table."""
        kept = torch.zeros(len(self.mask), dtype=torch.bool)
        kept[self.rows] = True
        return self.mask.cpu() & kept[:, None]

    def placed(self, tokens: Tensor) -> Tensor:
        """Return a column over the table's tokens in verl's shape, 0 elsewhere."""
        found = torch.zeros(self.mask.shape, dtype=torch.float32)
        found[self._sampled()] = tokens.float()
        return found.to(self.rewards.device)


_TENSORS = ("values", "old_log_probs", "rollout_log_probs", "ref_log_prob")
