"""ArCHer: a critic of whole turns that learns from replay, an actor over tokens (Zhou et al. 2024, arXiv 2402.19446).

High level: twin Q(s, a) and twin V(s) of states and actions as text, with a slow copy for their targets,

    L_Q = sum over i of mean( (Q_i(s, a) - [r + gamma * V_i_slow(s')])^2 )      0 after the end
    L_V = sum over i of mean( (V_i(s) - Q_i_slow(s, a))^2 )

Low level: the tokens of a turn get what its action is better than its state,

    A = min(Q_1, Q_2)(s, a) - min(V_1, V_2)(s)
    L = - mean over turns of A * (sum of the turn's log-probabilities)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.seeding import stream
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import (
    ClippedConfig,
    ClippedMethod,
    RatioLevel,
    Surrogate,
    one_of,
    sampled,
    within,
)
from turngym.trainers.core.algorithm import Credit, LossInputs, LossOutput, Normalisation, Rollout, Term
from turngym.trainers.core.columns import Texts, TokenColumn, with_columns
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from turngym.trainers.engine.critics.twin import Transition, TwinCritic

Objective: TypeAlias = Literal["plain", "clipped"]


@dataclass(frozen=True)
class ArCHerConfig(ClippedConfig):
    """Settings of ArCHer."""

    normalisation: Normalisation = "turn_sum"
    """Over what the policy loss is averaged; the paper sums the tokens of a turn."""
    objective: Objective = "plain"
    """Advantage times log-probability, or PPO's clipped surrogate, which allows more updates per batch."""
    gamma: float = 0.95
    """Discount per turn."""
    slow_rate: float = 0.1
    """Update rate of the slow critic after each of its replay updates, and at the end of an iteration."""
    critic_iterations: int = 20
    """Iterations at the beginning in which only the critic is trained."""
    critic_updates: int = 1
    """Updates of the critic an iteration: 1 is made with the policy, the others follow from the replay."""
    replay_turns: int = 100_000
    """Number of turns of earlier iterations kept for the critic; 0 for none."""
    replay_ratio: int = 4
    """Number of replayed turns per fresh one for Q."""
    expectile: float = 0.5
    """Above 0.5, V leans towards the better actions, as in implicit Q-learning; 0.5 is the mean."""
    value_coef: float = 1.0
    """Weight of the critic's losses."""
    bootstrap_truncated: bool = True
    """True if truncated episodes are bootstrapped with the critic's value; False treats them as terminated."""
    critic: str = "words"
    """Reader of the critic: ``words`` for a hash table of words, or ``model:FOLDER`` for a language model, which is
    trained."""
    buckets: int = 4096
    """Size of the critic's hash table of words and pairs of words."""
    width: int = 64
    """Size of the critic's hidden layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.critic != "words" and not self.critic.partition("model:")[2]:
            raise ConfigError(f"critic must be 'words' or 'model:FOLDER', got {self.critic!r}.")
        one_of("objective", self.objective, get_args(Objective))
        for setting in ("gamma", "slow_rate", "expectile"):
            within(setting, getattr(self, setting), 0, 1)
        for setting in ("critic_iterations", "replay_turns", "replay_ratio", "value_coef"):
            within(setting, getattr(self, setting), 0)
        for setting in ("critic_updates", "buckets", "width"):
            within(setting, getattr(self, setting), 1)


def transitions_of(table: TurnTable, rewards: Tensor, bootstrap_truncated: bool) -> list[Transition]:
    """Return the transition of each turn of the table.

    Raises:
        ConfigError: The turns do not have their actions as a column.
    """
    from turngym.trainers.engine.critics.twin import Transition

    if table.num_turns and "action" not in table.columns["turn"]:
        raise ConfigError("archer reads the actions of turns as a column: gather trajectories with its collect().")
    actions, ends = table.texts("turn", "action"), table.texts("episode", "final_anchor")
    found = []
    for turn in range(table.num_turns):
        following: str | None = None
        if turn + 1 < table.num_turns and table.episode[turn + 1] == table.episode[turn]:
            following = table.anchor_text[turn + 1]
        elif bootstrap_truncated and bool(table.truncated[turn]):
            following = ends[int(table.episode[turn])] or None
        found.append(Transition(table.anchor_text[turn], actions[turn], float(rewards[turn]), following))
    return found


def with_texts(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories with the actions of turns and the last anchor state as columns."""
    return [
        with_columns(
            replace(each, turns=[with_columns(turn, {"action": turn.action}) for turn in each.turns]),
            {"final_anchor": each.final_anchor},
        )
        for each in trajectories
    ]


@ALGORITHMS.register("archer")
class ArCHer(ClippedMethod[ArCHerConfig]):
    """Policy gradient over tokens with an off-policy critic of turns.

    The credit hands on to the loss, for each token, its turn and the replayed turns sampled for it, with the critic's
    targets. The replay is updated after the batch, the slow copy at the end of the iteration. With ``critic_updates``
    above 1 the critic then continues with fresh and replayed turns, drawn again for each update.
    """

    Config: ClassVar[type[ArCHerConfig]] = ArCHerConfig

    def __init__(self, config: ArCHerConfig) -> None:
        super().__init__(config)
        self.replay: list[Transition] = []
        self._iteration = 0

    @cached_property
    def critic(self) -> TwinCritic:
        """Critic of turns."""
        return self._twin_critic()

    @cached_property
    def slow(self) -> TwinCritic:
        """Copy that follows the critic slowly."""
        return self._twin_critic().requires_grad_(False)

    def _twin_critic(self) -> TwinCritic:
        from turngym.trainers.engine.critics.language import make_twin_critic  # imports torch and transformers

        return make_twin_critic(self.config.critic, self.config.buckets, self.config.width)

    @property
    def normalisations(self) -> frozenset[str]:
        """Those of the policy loss; the critic's losses are averaged over turns."""
        return super().normalisations | {"turn"}

    def with_ratio(self, level: RatioLevel) -> Self:
        """Return the method with another kind of importance ratio.

        Raises:
            ConfigError: The objective is plain.
        """
        if self.config.objective == "plain":
            raise ConfigError("archer with objective='plain' has no importance ratio. Pass objective='clipped'.")
        return super().with_ratio(level)

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the critic and its slow copy."""
        return {"turn_critic": self.critic, "turn_critic_slow": self.slow}

    def trains_policy(self, iteration: int) -> bool:
        """Return whether the critic has been trained for long enough."""
        return iteration >= self.config.critic_iterations

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Store the iteration, for the random numbers."""
        self._iteration = iteration

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather the trajectories of one iteration, with the texts that the critic reads."""
        return with_texts(rollout())

    @no_grad
    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the advantage of its turn's action."""
        config = self.config
        fresh = transitions_of(table, self.penalised_rewards(table), config.bootstrap_truncated)
        states, actions = [each.state for each in fresh], [each.action for each in fresh]
        replayed = self._replayed(len(fresh))
        q, v = self.critic.q(states, actions).amin(-1), self.critic.v(states).amin(-1)
        returns = F.discounted_returns(table.pad(self.penalised_rewards(table)), table.turn_mask(), gamma=config.gamma)
        metrics = {
            "q": float(q.mean()) if fresh else 0.0,
            "v": float(v.mean()) if fresh else 0.0,
            "explained_variance": F.explained_variance(v, table.unpad(returns)),
            "replayed_turns": float(len(replayed)),
        }
        columns = {name: column[table.token_turn] for name, column in self._critic_columns(fresh, replayed).items()}
        advantages = table.to_tokens((q - v).to(table.reward.dtype))
        return Credit(advantages, metrics=metrics, columns=columns, state={"fresh": fresh})

    def _critic_columns(self, fresh: Sequence[Transition], replayed: Sequence[Transition]) -> dict[str, TokenColumn]:
        """Return what the critic learns from at each turn: the turn itself, then the turns replayed for it."""
        learnt, count = [*fresh, *replayed], len(fresh)
        ratio = len(replayed) // max(count, 1)
        drawn = torch.cat([torch.arange(count)[:, None], count + torch.arange(count * ratio).reshape(count, ratio)], 1)
        return {
            "state": Texts.of([each.state for each in learnt])[drawn],
            "action": Texts.of([each.action for each in learnt])[drawn],
            "q_target": self.slow.targets(learnt, self.config.gamma)[drawn],
            "v_target": self.slow.q([each.state for each in fresh], [each.action for each in fresh]),
        }

    def _replayed(self, count: int, *update: int) -> list[Transition]:
        """Return ``replay_ratio`` turns of the replay for each of ``count`` fresh ones.

        Args:
            count: Number of fresh turns.
            update: Number of the update, of those that follow the batch.
        """
        if not self.replay:
            return []
        rng = stream("archer", self._iteration, *update)
        draws = rng.integers(len(self.replay), size=count * self.config.replay_ratio)
        return [self.replay[int(draw)] for draw in draws]

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return minus the advantage times the log-probability, or the clipped surrogate."""
        clipped = super().surrogate(inputs)
        if self.config.objective == "clipped":
            return clipped
        plain = -inputs.advantages * sampled(inputs.logprobs, inputs)
        never = torch.zeros_like(inputs.action_mask)
        return clipped._replace(policy=F.ClippedSurrogate(plain, plain, never, never))

    def critic_losses(self, columns: Mapping[str, TokenColumn]) -> tuple[Tensor, Tensor]:
        """Return the losses of Q and of V at some turns, both summed over the twins.

        That of Q is the mean over the turn itself and the replayed turns sampled for it.

        Args:
            columns: The credit's columns, one entry a turn.
        """
        states, actions = columns["state"], columns["action"]
        q_targets, v_targets = columns["q_target"], columns["v_target"]
        assert isinstance(states, Texts) and isinstance(actions, Texts)
        assert isinstance(q_targets, Tensor) and isinstance(v_targets, Tensor)
        q = self.critic.q(states.tolist(), actions.tolist())
        q_loss = ((q - q_targets.to(q).flatten(0, 1)) ** 2).sum(-1).reshape(q_targets.shape[:2]).mean(-1)
        v = self.critic.v(Texts(states.values, states.index[:, 0]).tolist())
        from turngym.trainers.engine.critics.twin import expectile_loss

        return q_loss, expectile_loss(v_targets.to(v) - v, self.config.expectile).sum(-1)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms and metrics of the policy, with those of the critic."""
        policy = super().loss(inputs)
        mask = inputs.action_mask
        turns, position = torch.unique(inputs.turn_ids[mask].cpu(), return_inverse=True)
        first = torch.full_like(turns, len(position)).scatter_reduce(0, position, torch.arange(len(position)), "amin")
        columns = {name: inputs.columns[name][mask][first] for name in ("state", "action", "q_target", "v_target")}
        spread = [
            torch.zeros_like(inputs.logprobs).masked_scatter(mask, each[position].to(inputs.logprobs))
            for each in self.critic_losses(columns)
        ]
        terms, metrics = dict(policy.terms), dict(policy.metrics)
        for name, losses in zip(("q", "v"), spread, strict=True):
            terms[name] = Term(self.config.value_coef * losses, "turn")
            metrics[f"turn_{name}_loss"] = Term(losses.detach(), "turn")
        return replace(policy, terms=terms, metrics=metrics)

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Keep the turns of the batch."""
        kept = self.config.replay_turns
        self.replay = (self.replay + credit.state["fresh"])[-kept:] if kept else []

    def module_losses(self, credit: Credit) -> Iterator[Tensor]:
        """Yield the critic's further losses: the mean over the fresh turns, each with others replayed for it."""
        fresh = credit.state["fresh"]
        for update in range(1, self.config.critic_updates):
            q_loss, v_loss = self.critic_losses(self._critic_columns(fresh, self._replayed(len(fresh), update)))
            yield self.config.value_coef * (q_loss.mean() + v_loss.mean())
            self.slow.move_towards(self.critic, self.config.slow_rate)

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Let the slow copy follow, at the end of an iteration."""
        self.slow.move_towards(self.critic, self.config.slow_rate)

    def state(self) -> dict[str, Any]:
        """Return the replay; critic and slow copy are saved as modules."""
        return {"replay": [list(each) for each in self.replay]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the replay."""
        from turngym.trainers.engine.critics.twin import Transition

        self.replay = [Transition(*each) for each in state["replay"]]
