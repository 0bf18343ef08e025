"""The turn table: columns over turns, the only input of credit assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from turngym.agents.trajectory import Trajectory
from turngym.arithmetic import as_float, float_sum, is_finite
from turngym.columns import reward_parts
from turngym.errors import ConfigError, DivergenceError
from turngym.lazy import Tensor, torch
from turngym.trainers.core.columns import NO_COLUMNS, Scope, TableColumn, table_columns
from turngym.trainers.core.flattened import FlatTurn, flatten

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class TurnTable:
    """Columns over turns, episodes contiguous and turns in order; ragged columns over sampled tokens.

    A table contains no faulted episodes. Episodes, groups, anchors, agents and roles are dense integer keys.

    Args:
        episode: Episode of each turn, ``0 .. E-1``, non-decreasing.
        turn: Position of the turn in its episode, from 0.
        group: Group of each turn's episode.
        anchor: Key of the anchor state; equal for turns of one group that start from the same one.
        agent: Seat that acted.
        reward: Reward received after the turn, float64.
        terminated: True on the last turn of an episode ended by the rules.
        truncated: True on the last turn of a truncated episode.
        is_valid: True if the action was parsed and legal.
        num_tokens: Number of tokens sampled in the turn; may be 0.
        token_turn: Turn of each sampled token, non-decreasing.
        token_logprob: The sampler's log-probability of each token.
        turn_value: Critic's value at the last prompt token of each turn; None without a critic.
        token_value: Critic's value before each sampled token; None without a critic.
        token_reference_logprob: Log-probability of each sampled token under the reference policy; None without one.
        token_teacher_logprob: The same under the teacher; nan in episodes without a lesson, None without a teacher.
        token_trainer_logprob: The same under the trained policy before the first update; None if not computed.
        token_squares: Sum of squared probabilities over the vocabulary at each sampled token, under the trained policy
            before the first update; None if not computed.
        token_divergence: The method's divergence over the vocabulary at each sampled token before the first update;
            None if not computed.
        token_other_logprob: Log-probability of each sampled token under the trained policy, after a prompt with another
            observation; nan for a turn without one, None if not computed.
        final_value: Critic's value after the last turn of each episode: 0 if it terminated, the last turn's value if
            there is no next prompt; None without a critic.
        role: Role of the seat that acted, as an index of ``role_names``.
        role_names: Names of the roles, as ``environment/role``; unlike the indices, equal in every batch.
        anchor_text: Text of each turn's anchor state, for methods that compare the texts.
        staleness: Training iterations between the policy that sampled the turn and the current one.
        earlier_reward: Return of each episode before its first turn in the table.
        masked: True for turns that count in statistics but not in the loss; empty for none.
        episode_number: Number of each episode, unique in the iteration; columns may refer to it.
        columns: Scope -> name -> column of environments, agents and ``collect``, for :meth:`numbers` and :meth:`texts`.
    """

    episode: Int[Tensor, "turn"]
    turn: Int[Tensor, "turn"]
    group: Int[Tensor, "turn"]
    anchor: Int[Tensor, "turn"]
    agent: Int[Tensor, "turn"]
    reward: Float[Tensor, "turn"]
    terminated: Bool[Tensor, "turn"]
    truncated: Bool[Tensor, "turn"]
    is_valid: Bool[Tensor, "turn"]
    num_tokens: Int[Tensor, "turn"]
    token_turn: Int[Tensor, "token"]
    token_logprob: Float[Tensor, "token"]
    turn_value: Float[Tensor, "turn"] | None = None
    token_value: Float[Tensor, "token"] | None = None
    token_reference_logprob: Float[Tensor, "token"] | None = None
    token_trainer_logprob: Float[Tensor, "token"] | None = None
    token_teacher_logprob: Float[Tensor, "token"] | None = None
    token_squares: Float[Tensor, "token"] | None = None
    token_divergence: Float[Tensor, "token"] | None = None
    token_other_logprob: Float[Tensor, "token"] | None = None
    final_value: Float[Tensor, "episode"] | None = None
    role: Int[Tensor, "turn"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    role_names: tuple[str, ...] = ()
    anchor_text: tuple[str, ...] = ()
    staleness: Int[Tensor, "turn"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    earlier_reward: Float[Tensor, "episode"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    masked: Bool[Tensor, "turn"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    episode_number: Int[Tensor, "episode"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    columns: Mapping[Scope, Mapping[str, TableColumn]] = field(default_factory=lambda: NO_COLUMNS)

    @property
    def num_turns(self) -> int:
        """Number of turns."""
        return len(self.episode)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return int(self.episode[-1]) + 1 if self.num_turns else 0

    @property
    def has_loss(self) -> bool:
        """True if any sampled token enters the loss."""
        return bool((~self.masked[self.token_turn]).any() if len(self.masked) else len(self.token_turn))

    @property
    def turns_per_episode(self) -> Int[Tensor, "episode"]:
        """Number of turns of each episode."""
        return torch.bincount(self.episode, minlength=self.num_episodes)

    @property
    def episode_group(self) -> Int[Tensor, "episode"]:
        """Group of each episode."""
        return self.group[self.turn == 0]

    @property
    def token_old_logprob(self) -> Float[Tensor, "token"]:
        """Old log-probabilities for ratios: the trainer's if computed, otherwise the sampler's."""
        return self.token_logprob if self.token_trainer_logprob is None else self.token_trainer_logprob

    def numbers(self, scope: Scope, name: str) -> Float[Tensor, "*scope"]:
        """Return a column of numbers, nan if missing.

        Raises:
            ConfigError: The column has strings.
        """
        column = self.columns[scope].get(name)
        if isinstance(column, tuple):
            raise ConfigError(f"the {scope} column {name!r} has strings, expected numbers.")
        if column is None:
            return torch.full((self._length(scope),), float("nan"), dtype=torch.float64)
        return column

    def texts(self, scope: Scope, name: str) -> tuple[str, ...]:
        """Return a column of strings, empty if missing.

        Raises:
            ConfigError: The column has numbers.
        """
        column = self.columns[scope].get(name, ("",) * self._length(scope))
        if not isinstance(column, tuple):
            raise ConfigError(f"the {scope} column {name!r} has numbers, expected strings.")
        return column

    def _length(self, scope: Scope) -> int:
        return {"token": len(self.token_turn), "turn": self.num_turns, "episode": self.num_episodes}[scope]

    def turn_mask(self) -> Bool[Tensor, "episode time"]:
        """Return the mask of turns in a padded column."""
        longest = int(self.turns_per_episode.max()) if self.num_turns else 0
        return torch.arange(longest)[None, :] < self.turns_per_episode[:, None]

    def pad(self, column: Tensor, fill: float = 0.0) -> Float[Tensor, "episode time"]:
        """Lay out a column over turns as ``[episode, turn]``."""
        mask = self.turn_mask()
        padded = torch.full(mask.shape, fill, dtype=column.dtype)
        padded[mask] = column
        return padded

    def unpad(self, padded: Tensor) -> Tensor:
        """Undo :meth:`pad`."""
        return padded[self.turn_mask()]

    def episode_sum(self, column: Float[Tensor, "turn"]) -> Float[Tensor, "episode"]:
        """Return the sum of a column over the turns of each episode."""
        return torch.zeros(self.num_episodes, dtype=column.dtype).index_add_(0, self.episode, column)

    def token_sum(self, column: Float[Tensor, "token"]) -> Float[Tensor, "episode"]:
        """Return the sum of a column over the sampled tokens of each episode."""
        return self.episode_sum(torch.zeros(self.num_turns, dtype=column.dtype).index_add_(0, self.token_turn, column))

    def token_mean(self, column: Float[Tensor, "token"]) -> Float[Tensor, "episode"]:
        """Return the mean of a column over the sampled tokens of each episode, 0 without tokens."""
        return self.token_sum(column) / self.token_sum(torch.ones_like(column)).clamp_min(1)

    def episode_return(self) -> Float[Tensor, "episode"]:
        """Return the return of each episode, rewards before its branching point included."""
        returns = self.episode_sum(self.reward)
        return returns + self.earlier_reward.to(returns.dtype) if len(self.earlier_reward) else returns

    def invalid_penalties(self, penalty: float) -> Float[Tensor, "turn"]:
        """Return each turn's penalty: ``penalty`` if its action was invalid, else 0."""
        return penalty * (~self.is_valid).to(self.reward.dtype)

    def to_tokens(self, column: Tensor) -> Tensor:
        """Copy a turn's entry to each of its sampled tokens."""
        return column[self.token_turn]

    def turn_entries(self, column: Tensor) -> Tensor:
        """Undo :meth:`to_tokens`: return the entry shared by a turn's tokens, 0 without tokens."""
        entries = torch.zeros(self.num_turns, dtype=column.dtype)
        entries[self.token_turn] = column
        return entries

    def first_tokens(self) -> Bool[Tensor, "token"]:
        """Return the mask of sampled tokens that are the first of their turn."""
        first = torch.ones_like(self.token_turn, dtype=torch.bool)
        first[1:] = self.token_turn[1:] != self.token_turn[:-1]
        return first

    def with_values(
        self,
        turn_value: Float[Tensor, "turn"],
        token_value: Float[Tensor, "token"],
        final_value: Float[Tensor, "episode"],
    ) -> TurnTable:
        """Return the table with the critic's columns filled in."""
        return replace(self, turn_value=turn_value, token_value=token_value, final_value=final_value)


def _dense(keys: Sequence[object]) -> Tensor:
    numbers: dict[object, int] = {}
    return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys], dtype=torch.long)


def turn_table(trajectories: Sequence[Trajectory]) -> TurnTable:
    """Build the table of finished trajectories, without faulted and empty ones.

    Raises:
        DivergenceError: A reward is not finite.
    """
    kept = usable(trajectories)
    return table_of(kept, flatten(kept))


def table_of(kept: Sequence[Trajectory], flat: Sequence[FlatTurn]) -> TurnTable:
    """Build the table of usable trajectories.

    Args:
        kept: The trajectories.
        flat: Their turns, from :func:`turngym.trainers.core.flattened.flatten`.

    Raises:
        DivergenceError: A reward is not finite.
    """
    _check_rewards(flat)
    turns = [each.turn for each in flat]
    num_tokens = torch.tensor([len(turn.completion_ids) for turn in turns], dtype=torch.long)
    last = torch.tensor([each.position == len(each.trajectory.turns) - 1 for each in flat], dtype=torch.bool)
    ended = torch.tensor([(each.terminated, each.truncated) for *_, each, _, _ in flat], dtype=torch.bool)
    ended = ended.reshape(-1, 2)
    roles = [f"{each.env_id}/{each.role or turn.agent}" for _, _, each, turn, _ in flat]
    groups = [each.spec.group for _, _, each, _, _ in flat]
    return TurnTable(
        episode=torch.tensor([each.episode for each in flat], dtype=torch.long),
        turn=torch.tensor([each.position for each in flat], dtype=torch.long),
        group=_dense(groups),
        anchor=_dense([(group, turn.anchor) for group, turn in zip(groups, turns, strict=True)]),
        agent=_dense([turn.agent for turn in turns]),
        reward=torch.tensor([turn.reward for turn in turns], dtype=torch.float64),
        terminated=last & ended[:, 0],
        truncated=last & ended[:, 1] & ~ended[:, 0],
        is_valid=torch.tensor([turn.action_is_valid for turn in turns], dtype=torch.bool),
        num_tokens=num_tokens,
        token_turn=torch.repeat_interleave(torch.arange(len(turns)), num_tokens),
        token_logprob=torch.tensor([logprob for turn in turns for logprob in turn.logprobs], dtype=torch.float64),
        role=_dense(roles),
        role_names=tuple(dict.fromkeys(roles)),
        anchor_text=tuple(turn.anchor for turn in turns),
        staleness=torch.tensor([turn.staleness for turn in turns], dtype=torch.long),
        earlier_reward=torch.tensor(
            [float_sum(turn.reward for turn in each.earlier_turns) for each in kept], dtype=torch.float64
        ),
        episode_number=torch.tensor([each.spec.episode for each in kept], dtype=torch.long),
        columns=table_columns([each.columns for each in kept], [turn.columns for turn in turns], num_tokens.tolist()),
    )


def _check_rewards(flat: Sequence[FlatTurn]) -> None:
    for _, k, traj, turn, _ in flat:
        if not is_finite(turn.reward):
            raise _not_finite(traj, f"the reward {as_float(turn.reward)}", k)
        for name, part in reward_parts(turn.columns).items():
            if not is_finite(part):
                raise _not_finite(traj, f"the reward part {name!r} of {as_float(part)}", k)


def _not_finite(trajectory: Trajectory, what: str, turn: int) -> DivergenceError:
    place = f"episode {trajectory.spec.episode} of {trajectory.env_id}"
    return DivergenceError(f"{place} got {what} at turn {turn}.", "reward")


def usable(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories to train on, in order: without a fault, with at least one turn."""
    return [trajectory for trajectory in trajectories if not trajectory.fault and trajectory.turns]
