"""Supervised learning on expert demonstrations: the warm-up before training, and the control next to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.players.expert import GIVEN_UP, ExpertAgent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.seeding import stream, stream_seed
from turngym.trainers.core.context import require_turns
from turngym.trainers.core.rows import MicroBatch, Reads, Row, build_batch, build_rows, micro_batches
from turngym.trainers.core.wording import counted
from turngym.trainers.engine.checkpointing import checkpointed_layers, checkpointing
from turngym.trainers.engine.layouts import ROWS, Layout
from turngym.trainers.engine.optimizer import adamw, decay_groups
from turngym.trainers.engine.scoring import score
from turngym.trainers.settings.supervised import SupervisedConfig as SupervisedConfig

_MICRO_BATCH_TOKENS = 16_384
_WEIGHT_DECAY = 0.01


class DemonstrationAgent(Agent):
    """Agent that plays the solver's actions, written in the model's format.

    Args:
        student: The agent whose prompts and answer format are used.
        expert: Demonstrator; the environment's solver by default.
    """

    def __init__(self, student: ModelAgent, expert: Agent | None = None) -> None:
        self.student = student
        self.expert = expert or ExpertAgent()

    def attach(self, vector: TextVectorEnv) -> None:
        """Set the vector whose solvers are used."""
        self.expert.attach(vector)

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the solver's actions with the token ids of their completions.

        Raises:
            ConfigError: The environment has no solver.
        """
        try:
            actions = [decision.action for decision in self.expert.act(requests)]
        except ConfigError as error:
            raise ConfigError(f"{error} To train without a warm-up, pass --warmup.demonstrations 0.") from error
        return [self.student.follow(request, action) for request, action in zip(requests, actions, strict=True)]

    def forget(self, episode: int) -> None:
        """Forget an episode in student and expert."""
        self.student.forget(episode)
        self.expert.forget(episode)


def demonstrations(vector: TextVectorEnv, student: ModelAgent, count: int, seed: int) -> list[Trajectory]:
    """Return ``count`` episodes of the solver, without faults and episodes that it gives up.

    Equal seeds give equal episodes.

    Raises:
        ConfigError: The environment has no solver or faulted in every episode, or no first prompt fits.
    """
    specs = [EpisodeSpec(i, stream_seed("demonstration", seed, i) % 2**31, i) for i in range(count)]
    played = rollout(vector, DemonstrationAgent(student), specs)
    if played and all(trajectory.fault for trajectory in played):
        raise ConfigError(f"the environment broke in each of {counted(count, 'demonstration')}: {played[0].fault}")
    require_turns(played)
    return [t for t in played if not t.fault and all(turn.action != GIVEN_UP for turn in t.turns)]


def with_observations(row: Row) -> Row:
    """Return a sequence with reads at all positions; at prompt tokens with a target but no sampled token.

    >>> from turngym.trainers.core.rows import Read
    >>> row = Row.of([5, 6, 7], [Read(1, 7, 0, 0, 0)])
    >>> [(read.target, read.token) for read in with_observations(row).reads]
    [(6, -1), (7, 0)]
    """
    sampled = row.reads.token >= 0
    places = row.reads.position[sampled]
    token, turn = (np.full(len(row.ids) - 1, -1, dtype=np.int64) for _ in range(2))
    token[places], turn[places] = row.reads.token[sampled], row.reads.turn[sampled]
    episode = np.full_like(token, row.reads.episode[0])
    return Row(row.ids, Reads(np.arange(len(token)), row.ids[1:], token, turn, episode), row.pictures)


class SupervisedLearner:
    """Supervised learning of a model on demonstrations, by next-token prediction.

    Args:
        network: The model's network.
        trajectories: The demonstrations.
        config: Learning rate, batch size and loss.
        seed: Seed of the order of the batches.
        layout: Layout of sequences.
        max_micro_batch_tokens: Tokens per forward pass, padding included; 0 for 16,384.
        gradient_checkpointing: Store only the input of each layer for the backward pass.

    Raises:
        ConfigError: The network has no layers for checkpointing, or they have a dropout.
    """

    def __init__(
        self,
        network: nn.Module,
        trajectories: Sequence[Trajectory],
        config: SupervisedConfig,
        seed: int,
        layout: Layout = ROWS,
        max_micro_batch_tokens: int = 0,
        gradient_checkpointing: bool = False,
    ) -> None:
        self.network = network
        self._device = next(network.parameters()).device
        self.layout = layout
        self.config = config
        self.seed = seed
        self.max_micro_batch_tokens = max_micro_batch_tokens or _MICRO_BATCH_TOKENS
        self._checkpointed = checkpointed_layers(network) if gradient_checkpointing else []
        self.epoch = 0
        self._kept_logprobs: dict[int, Tensor] = {}
        rows = build_rows(trajectories, with_final_prompts=False)
        self.batch = build_batch([with_observations(row) for row in rows] if config.observation_weight else rows)
        groups = decay_groups(list(network.parameters()), _WEIGHT_DECAY)
        self.optimizer = adamw(groups, lr=config.learning_rate, betas=(0.9, 0.99))

    def run_epoch(self, should_stop: Callable[[], bool] = lambda: False) -> float:
        """Make one pass over the demonstrations and return the mean loss per token, in nats."""
        order = stream("supervised", self.seed, self.epoch).permutation(len(self.batch.sequences)).tolist()
        total = tokens = 0.0
        size = self.config.batch_size
        self.network.train()
        for start in range(0, len(order), size):
            if should_stop():
                break
            if self.config.clip and not start % (size * self.config.clip_every):
                self._keep_logprobs(order[start : start + size * self.config.clip_every])
            loss, count = self._update(order[start : start + size])
            total, tokens = total + loss, tokens + count
        self.network.eval()
        self.epoch += 1
        return total / max(tokens, 1.0)

    @no_grad
    def _keep_logprobs(self, sequences: list[int]) -> None:
        """Compute the old log-probabilities for ratios, without dropout."""
        self.network.eval()
        for part in micro_batches(self.batch, sequences, self.max_micro_batch_tokens, self.layout.cut):
            self._kept_logprobs.update(zip(part.rows.tolist(), self._logprobs(part), strict=True))
        self.network.train()

    def _logprobs(self, part: MicroBatch) -> Tensor:
        """Return the log-probability of each read of the rows of a micro-batch, ``[row, column]``."""
        rows = [self.batch.sequences[int(s)] for s in part.sequences]
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            scores = score(self.network, rows, 1.0, layout=self.layout)  # type: ignore[arg-type]
        return scores.logprobs[part.sequence_of.to(self._device)]

    def _weights(self, rows: Tensor) -> Tensor:
        """Return the loss weight of each read, ``[row, column]``; 0 in padding."""
        told = torch.where(self.batch.episode[rows] >= 0, self.config.observation_weight, 0.0)
        return torch.where(self.batch.action_mask[rows], 1.0, told)

    def _update(self, sequences: list[int]) -> tuple[float, float]:
        self.optimizer.zero_grad(set_to_none=True)
        loss_sum = count = 0.0
        parts = micro_batches(self.batch, sequences, self.max_micro_batch_tokens, self.layout.cut)
        total_weight = sum(float(self._weights(part.rows).sum()) for part in parts)
        for part in parts:
            with checkpointing(self._checkpointed):
                loss_sum += self._backward(part, total_weight)
            count += float(self.batch.action_mask[part.rows].sum())
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        return loss_sum, count

    def _backward(self, part: MicroBatch, total_weight: float) -> float:
        """Accumulate the gradients of one micro-batch; return the summed loss of the sampled tokens."""
        logprobs = self._logprobs(part)
        losses = -logprobs
        weights, written = self._weights(part.rows), self.batch.action_mask[part.rows]
        weights, written = (each[:, : losses.shape[1]].to(self._device) for each in (weights, written))
        taught = losses
        if self.config.clip:
            kept = [self._kept_logprobs[row][: losses.shape[1]] for row in part.rows.tolist()]
            gained = logprobs - nn.utils.rnn.pad_sequence(kept, batch_first=True)
            taught = -gained.clamp_max(math.log1p(self.config.clip)).exp()
        ((taught * weights).sum() / total_weight).backward()
        return float((losses.detach() * written).sum())
