"""ArCHer: a critic of whole turns that learns from replay, an actor over tokens (Zhou et al. 2024, arXiv 2402.19446).

High level: twin Q(s, a) and twin V(s) of states and actions as text, with a slow copy for their targets,

    L_Q = sum over i of mean( (Q_i(s, a) - [r + gamma * V_i_slow(s')])^2 )      0 after the end
    L_V = sum over i of mean( (V_i(s) - Q_i_slow(s, a))^2 )

Low level: the tokens of a turn get what its action is better than its state,

    A = min(Q_1, Q_2)(s, a) - min(V_1, V_2)(s)
    L = - mean over turns of A * (sum of the turn's log-probabilities)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.seeding import stream
from turngym.trainers import functional as F
from turngym.trainers.algorithm import Credit, LossInputs, LossOutput, Normalisation, Term
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.clipped import ClippedConfig, ClippedMethod, RatioLevel, Surrogate, one_of, sampled, within
from turngym.trainers.turn_table import TurnTable

if TYPE_CHECKING:
    from turngym.trainers.twin_critic import Transition

Objective: TypeAlias = Literal["plain", "clipped"]


@dataclass(frozen=True)
class ArCHerConfig(ClippedConfig):
    """Settings of ArCHer."""

    normalisation: Normalisation = "turn_sum"
    """Over what the policy loss is averaged; the paper sums the tokens of a turn."""
    objective: Objective = "plain"
    """Advantage times log-probability, or PPO's clipped surrogate, which bears more updates on one batch."""
    gamma: float = 0.95
    """Discount per turn."""
    slow_rate: float = 0.1
    """How far the slow copy of the critic moves towards it at the end of an iteration."""
    critic_iterations: int = 20
    """Iterations at the beginning in which only the critic is trained."""
    replay_turns: int = 10_000
    """How many turns of earlier iterations are kept for the critic; 0 for none."""
    replay_ratio: int = 4
    """How many replayed turns Q learns from for each fresh one."""
    expectile: float = 0.5
    """Above 0.5, V leans towards the better actions, as in implicit Q-learning; 0.5 is the mean."""
    value_coef: float = 1.0
    """Weight of the critic's losses."""
    bootstrap_truncated: bool = True
    """Whether the critic's value stands for the rest of an episode that was cut off; False treats it as ended."""
    buckets: int = 4096
    """Size of the critic's hash table of words and pairs of words."""
    width: int = 64
    """Size of the critic's hidden layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("objective", self.objective, get_args(Objective))
        for setting in ("gamma", "slow_rate", "expectile"):
            within(setting, getattr(self, setting), 0, 1)
        for setting in ("critic_iterations", "replay_turns", "replay_ratio", "value_coef"):
            within(setting, getattr(self, setting), 0)
        for setting in ("buckets", "width"):
            within(setting, getattr(self, setting), 1)


def transitions_of(table: TurnTable, rewards: Tensor, bootstrap_truncated: bool) -> list[Transition]:
    """Return what each turn of the table led to."""
    from turngym.trainers.twin_critic import Transition

    found = []
    for turn in range(table.num_turns):
        following: str | None = None
        if turn + 1 < table.num_turns and table.episode[turn + 1] == table.episode[turn]:
            following = table.anchor_text[turn + 1]
        elif bootstrap_truncated and bool(table.truncated[turn]):
            following = table.final_anchor_text[int(table.episode[turn])] or None
        found.append(Transition(table.anchor_text[turn], table.action_text[turn], float(rewards[turn]), following))
    return found


@ALGORITHMS.register("archer")
class ArCHer(ClippedMethod[ArCHerConfig]):
    """Policy gradient over tokens with an off-policy critic of turns.

    The loss is told the numbers of turns and not their texts: ``credit`` keeps those of its table, with the
    critic's targets, for the losses of the same batch. Replay and slow copy move on at the end of the iteration.
    """

    Config: ClassVar[type[ArCHerConfig]] = ArCHerConfig

    def __init__(self, config: ArCHerConfig) -> None:
        super().__init__(config)
        from turngym.trainers.twin_critic import TwinCritic  # a class of torch's

        self.critic = TwinCritic(config.buckets, config.width)
        self.slow = TwinCritic(config.buckets, config.width).requires_grad_(False)
        self.replay: list[Transition] = []
        self._iteration = 0
        self._fresh: list[Transition] = []
        self._learnt: list[Transition] = []
        self._q_targets = self._v_targets = torch.zeros(0, 2)

    @property
    def normalisations(self) -> frozenset[str]:
        """Those of the policy loss; the critic's losses are averaged over turns."""
        return super().normalisations | {"turn"}

    def with_ratio(self, level: RatioLevel) -> Self:
        """Return the method with its importance ratio taken over something else.

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
        """Note the iteration, for the random numbers."""
        self._iteration = iteration

    @no_grad
    def credit(self, table: TurnTable) -> Credit:
        """Assign each token what its turn's action is worth more than its state, and keep the critic's targets."""
        config = self.config
        fresh = transitions_of(table, self.penalised_rewards(table), config.bootstrap_truncated)
        states, actions = [each.state for each in fresh], [each.action for each in fresh]
        self._fresh, self._learnt = fresh, [*fresh, *self._replayed(len(fresh))]
        self._q_targets = self.slow.targets(self._learnt, config.gamma)
        self._v_targets = self.slow.q(states, actions)
        q, v = self.critic.q(states, actions).amin(-1), self.critic.v(states).amin(-1)
        returns = F.discounted_returns(table.pad(self.penalised_rewards(table)), table.turn_mask(), gamma=config.gamma)
        metrics = {
            "q": float(q.mean()) if fresh else 0.0,
            "v": float(v.mean()) if fresh else 0.0,
            "explained_variance": F.explained_variance(v, table.unpad(returns)),
            "replayed_turns": float(len(self._learnt) - len(fresh)),
        }
        return Credit(table.to_tokens((q - v).to(table.reward.dtype)), metrics=metrics)

    def _replayed(self, count: int) -> list[Transition]:
        """Return ``replay_ratio`` turns of earlier iterations for each of ``count`` fresh ones."""
        if not self.replay:
            return []
        draws = stream("archer", self._iteration).integers(len(self.replay), size=count * self.config.replay_ratio)
        return [self.replay[int(draw)] for draw in draws]

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return minus the advantage times the log-probability, or the clipped surrogate."""
        clipped = super().surrogate(inputs)
        if self.config.objective == "clipped":
            return clipped
        plain = -inputs.advantages * sampled(inputs.logprobs, inputs)
        never = torch.zeros_like(inputs.action_mask)
        return clipped._replace(policy=F.ClippedSurrogate(plain, plain, never, never))

    def critic_losses(self, turns: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the losses of Q and of V at these turns of the batch, both summed over the twins.

        That of Q is the mean over the turn itself and the replayed turns that were drawn for it.
        """
        total, ratio = len(self._fresh), self.config.replay_ratio if len(self._learnt) > len(self._fresh) else 0
        index = [k for turn in turns for k in (turn, *range(total + turn * ratio, total + (turn + 1) * ratio))]
        learnt = [self._learnt[k] for k in index]
        q = self.critic.q([each.state for each in learnt], [each.action for each in learnt])
        q_loss = ((q - self._q_targets[index]) ** 2).sum(-1).reshape(len(turns), ratio + 1).mean(-1)
        v = self.critic.v([self._fresh[turn].state for turn in turns])
        from turngym.trainers.twin_critic import expectile_loss

        v_loss = expectile_loss(self._v_targets[list(turns)] - v, self.config.expectile).sum(-1)
        return q_loss, v_loss

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms and metrics of the policy, with those of the critic."""
        policy = super().loss(inputs)
        turns, position = torch.unique(inputs.turn_ids[inputs.action_mask].cpu(), return_inverse=True)
        spread = [
            torch.zeros_like(inputs.logprobs).masked_scatter(inputs.action_mask, each[position].to(inputs.logprobs))
            for each in self.critic_losses(turns.tolist())
        ]
        terms, metrics = dict(policy.terms), dict(policy.metrics)
        for name, losses in zip(("q", "v"), spread, strict=True):
            terms[name] = Term(self.config.value_coef * losses, "turn")
            metrics[f"turn_{name}_loss"] = Term(losses.detach(), "turn")
        return replace(policy, terms=terms, metrics=metrics)

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Keep the turns of the finished iteration, and let the slow copy follow."""
        kept = self.config.replay_turns
        self.replay = (self.replay + self._fresh)[-kept:] if kept else []
        self._fresh = []
        self.slow.move_towards(self.critic, self.config.slow_rate)

    def state(self) -> dict[str, Any]:
        """Return the replay; critic and slow copy are saved as modules."""
        return {"replay": [list(each) for each in self.replay]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Bring the replay back."""
        from turngym.trainers.twin_critic import Transition

        self.replay = [Transition(*each) for each in state["replay"]]
