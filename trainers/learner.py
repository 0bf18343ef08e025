"""The learner: turns trajectories into credit, a loss and an update of the weights."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from turngym.agents.models import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import DivergenceError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.seeding import stream
from turngym.trainers import context
from turngym.trainers.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need
from turngym.trainers.columns import TokenColumn, check_token_columns, lay_out_column
from turngym.trainers.finite import bad_gradient, bad_loss, check_advantages, check_weights, located
from turngym.trainers.functional import loss_weights
from turngym.trainers.policy_statistics import PolicyStatistics, table_metrics
from turngym.trainers.rows import Batch, MicroBatch, build_batch, build_rows, micro_batches
from turngym.trainers.scoring import Critic, score
from turngym.trainers.sharing import copy_sharing_frozen
from turngym.trainers.turn_table import TurnTable, turn_table
from turngym.trainers.update_config import UpdateConfig

__all__ = ["Learner", "UpdateConfig"]


@dataclass(frozen=True)
class _Columns:
    """Everything over sampled tokens that the loss reads, in table order."""

    advantages: Tensor
    old_logprobs: Tensor
    weights: Mapping[str, Tensor]
    returns: Tensor | None
    old_values: Tensor | None
    reference_logprobs: Tensor | None
    of_credit: Mapping[str, TokenColumn]


class Learner:
    """Owns the policy's weights, the critic, the reference policy and the optimiser.

    Args:
        model: The policy.
        algorithm: What assigns credit and defines the loss.
        config: How weights are updated.
        temperature: The sampler's temperature.
        seed: Seed of the run, for dealing out minibatches.
        merge_rows: False gives every turn a row of its own.
    """

    def __init__(
        self,
        model: LanguageModel,
        algorithm: Algorithm[object],
        config: UpdateConfig,
        temperature: float = 1.0,
        seed: int = 0,
        merge_rows: bool = True,
    ) -> None:
        self.network = model.network
        self.algorithm = algorithm
        self.config = config
        self.temperature = temperature
        self.seed = seed
        self.merge_rows = merge_rows
        self.updates = 0
        """Updates so far, those in which only the critic was trained included."""
        self.policy_updates = 0
        """Updates of the policy so far, over which its step size warms up."""
        self.sampler: nn.Module | None = None
        """A copy of the policy that samples in its place while it is held back; None where the policy itself does."""
        self.advantages = torch.zeros(0)
        """Advantage of each sampled token of the last batch, in table order."""
        self._trains_policy = True
        self._statistics = PolicyStatistics(turn_table([]))
        self.critic = Critic(model.network) if Need.VALUES in algorithm.needs else None
        self.reference = self._frozen_copy() if Need.REFERENCE_LOGPROBS in algorithm.needs else None
        policy = [p for p in self.network.parameters() if p.requires_grad]
        critic = [p for p in self.critic.parameters() if p.requires_grad] if self.critic else []
        extra = [p for module in algorithm.modules().values() for p in module.parameters()]
        groups = [
            {"params": policy, "lr": config.learning_rate},
            {"params": [*critic, *extra], "lr": config.critic_learning_rate},
        ]
        self.policy_parameters, self.other_parameters = policy, [*critic, *extra]
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            weight_decay=config.weight_decay,
            betas=(config.momentum, 0.99),
        )
        self._rates = [float(group["lr"]) for group in self.optimizer.param_groups]

    @property
    def trained_modules(self) -> dict[str, nn.Module]:
        """Name -> network whose weights are updated."""
        critic: dict[str, nn.Module] = {} if self.critic is None else {"critic": self.critic}
        return {"policy": self.network, **critic, **{f"module.{k}": m for k, m in self.algorithm.modules().items()}}

    @property
    def _token_limit(self) -> int:
        return self.config.max_micro_batch_tokens or (2048 if self.network.device.type == "cpu" else 16_384)

    def _frozen_copy(self) -> nn.Module:
        frozen: nn.Module = copy_sharing_frozen(self.network)
        return frozen.requires_grad_(False).eval()

    def hold_back_sampler(self) -> None:
        """Let the weights of now sample until this is called again, whatever the updates between."""
        if self.sampler is None:
            self.sampler = self._frozen_copy()
        self.sampler.load_state_dict(self.network.state_dict())

    def update(self, trajectories: Sequence[Trajectory], iteration: int) -> dict[str, float]:
        """Assign credit to the trajectories of one iteration and update the weights; returns metrics."""
        kept = context.kept(trajectories, self.config.on_context)
        table = context.masked(turn_table(kept), kept, self.config.on_context)
        self.advantages = torch.zeros(0)
        if not table.has_loss:
            return {"train/updates": float(self.updates), "train/rows": 0.0}
        rows = build_rows(kept, with_final_prompts=self.critic is not None, merge=self.merge_rows)
        batch = build_batch(rows)
        table = self._with_values(batch, table)
        credit = self.algorithm.credit(table)
        check_advantages(credit.advantages, table, kept)
        check_token_columns(credit.columns, len(table.token_turn))
        columns = self._columns(batch, table, credit)
        self.advantages = credit.advantages
        self._trains_policy = self.algorithm.trains_policy(iteration)
        metrics = {f"credit/{name}": float(value) for name, value in credit.metrics.items()}
        metrics.update(table_metrics(table))
        self._statistics = PolicyStatistics(table)
        try:
            metrics.update(self._run_epochs(batch, columns, iteration))
            check_weights(self.trained_modules)
        except DivergenceError as error:
            raise located(error, kept) from None
        self.algorithm.update_state(kept, credit)
        metrics.update(self._statistics.metrics())
        metrics["train/updates"] = float(self.updates)
        metrics["train/rows"] = float(len(rows))
        metrics["train/distinct_sequences"] = float(len(batch.sequences))
        return metrics

    @no_grad
    def _map_reads(self, batch: Batch, read: Callable[[Sequence[object]], Tensor]) -> Tensor:
        """Return what ``read`` says of every sequence, laid out as ``[row, column]``."""
        found = torch.zeros(batch.token.shape, dtype=torch.float64)
        for part in micro_batches(batch, range(len(batch.sequences)), self._token_limit):
            values = read([batch.sequences[int(s)] for s in part.sequences]).double().cpu()
            found[part.rows, : values.shape[1]] = values[part.sequence_of]
        return found

    def _with_values(self, batch: Batch, table: TurnTable) -> TurnTable:
        if self.critic is None:
            return table
        values = self._map_reads(batch, self.critic)
        token_value = torch.zeros(len(table.token_turn), dtype=torch.float64)
        token_value[batch.token[batch.action_mask]] = values[batch.action_mask]
        turn_value = torch.zeros(table.num_turns, dtype=torch.float64)
        empty = (batch.token < 0) & (batch.turn >= 0)
        turn_value[batch.turn[empty]] = values[empty]
        first = table.first_tokens()
        turn_value[table.token_turn[first]] = token_value[first]
        final_value = torch.zeros(table.num_episodes, dtype=torch.float64)
        final_value[table.episode[table.truncated]] = turn_value[table.truncated]  # where no prompt comes after it
        final = (batch.turn < 0) & (batch.episode >= 0)
        final_value[batch.episode[final]] = values[final]
        return table.with_values(turn_value, token_value, final_value)

    def _columns(self, batch: Batch, table: TurnTable, credit: Credit) -> _Columns:
        reference = None
        if self.reference is not None:
            network = self.reference
            laid_out = self._map_reads(batch, lambda part: score(network, part, self.temperature).logprobs)  # type: ignore[arg-type]
            reference = torch.zeros(len(table.token_turn), dtype=torch.float64)
            reference[batch.token[batch.action_mask]] = laid_out[batch.action_mask]
        weights = {name: loss_weights(table, name) for name in self.algorithm.normalisations}
        return _Columns(
            credit.advantages,
            table.token_logprob,
            weights,
            credit.returns,
            table.token_value,
            reference,
            credit.columns,
        )

    def _run_epochs(self, batch: Batch, columns: _Columns, iteration: int) -> dict[str, float]:
        totals: dict[str, float] = defaultdict(float)
        count = 0
        scored = [i for i, row in enumerate(batch.sequences) if any(read.token >= 0 for read in row.reads)]
        for epoch in range(self.config.epochs):
            order = stream("minibatches", self.seed, iteration, epoch).permutation(scored)
            parts = [order[k :: self.config.minibatches] for k in range(min(self.config.minibatches, len(scored)))]
            for part in parts:
                metrics = self._one_update(batch, columns, [int(s) for s in part], scale=float(len(parts)))
                count += 1
                for name, value in metrics.items():
                    totals[name] += value
        return {name: value / count for name, value in totals.items()}

    def _one_update(self, batch: Batch, columns: _Columns, sequences: Sequence[int], scale: float) -> dict[str, float]:
        """Make one update on a minibatch.

        Every sequence is in one of ``scale`` minibatches, drawn at random, so its terms times ``scale`` are an unbiased
        estimate of the whole batch's, whatever they are normalised over and however many rows repeat it.
        """
        parts = micro_batches(batch, sequences, self._token_limit)
        self.optimizer.zero_grad(set_to_none=True)
        metrics: dict[str, float] = defaultdict(float)
        probes: dict[str, list[Tensor]] = {}
        for part in parts:
            inputs = self._inputs(batch, columns, part, scale)
            self._statistics.add(inputs)
            self._backward(self.algorithm.loss(inputs), inputs, metrics, probes)
        self._apply(probes, metrics)
        self._statistics.end_update()
        return dict(metrics)

    def _inputs(self, batch: Batch, columns: _Columns, part: MicroBatch, scale: float) -> LossInputs:
        sequences = [batch.sequences[int(s)] for s in part.sequences]
        scores = score(self.network, sequences, self.temperature, Need.ENTROPY in self.algorithm.needs)
        width, rows = scores.logprobs.shape[1], part.rows
        dtype, device = scores.logprobs.dtype, scores.logprobs.device

        def column(flat: Tensor | None, fill: float = 0.0) -> Tensor | None:
            if flat is None:
                return None
            return batch.gather(flat, rows, fill)[:, :width].to(device=device, dtype=dtype)

        def spread(read: Tensor | None) -> Tensor | None:
            return None if read is None else read[part.sequence_of.to(device)]

        advantages, old = column(columns.advantages), column(columns.old_logprobs)
        assert advantages is not None and old is not None
        logprobs = spread(scores.logprobs)
        assert logprobs is not None
        weights = {name: column(flat * scale) for name, flat in columns.weights.items()}
        return LossInputs(
            logprobs=logprobs,
            old_logprobs=old,
            advantages=advantages,
            action_mask=batch.action_mask[rows][:, :width].to(device),
            turn_ids=torch.where(batch.token[rows] >= 0, batch.turn[rows], -1)[:, :width].to(device),
            weights={name: weight for name, weight in weights.items() if weight is not None},
            entropy=spread(scores.entropy),
            reference_logprobs=column(columns.reference_logprobs),
            values=spread(self.critic(sequences)) if self.critic is not None else None,
            old_values=column(columns.old_values),
            returns=column(columns.returns, float("nan")),
            columns={
                name: lay_out_column(each, batch.token[rows][:, :width], device)
                for name, each in columns.of_credit.items()
            },
        )

    def _backward(
        self, output: LossOutput, inputs: LossInputs, metrics: dict[str, float], probes: dict[str, list[Tensor]]
    ) -> None:
        """Add one micro-batch's gradients, those of the probes apart, and its metrics."""
        for name, term in output.probes.items():
            found = torch.autograd.grad(
                term.total(inputs), self.policy_parameters, retain_graph=True, allow_unused=True
            )
            mine = probes.setdefault(name, [torch.zeros_like(p) for p in self.policy_parameters])
            for total, gradient in zip(mine, found, strict=True):
                if gradient is not None:
                    total += gradient
        loss = output.total(inputs)
        if not bool(torch.isfinite(loss)):
            raise bad_loss(output, inputs)
        if loss.requires_grad:
            loss.backward()
        for group in (output.terms, output.metrics):
            for name, term in group.items():
                metrics[f"loss/{name}"] += float(term.total(inputs).detach())

    def _apply(self, probes: Mapping[str, Sequence[Tensor]], metrics: dict[str, float]) -> None:
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.policy_parameters]
        changed = self.algorithm.transform_gradients(gradients, probes, metrics)
        metrics.update({f"train/{name}": value for name, value in changed.metrics.items()})
        for parameter, gradient in zip(self.policy_parameters, changed.values, strict=True):
            parameter.grad = gradient if self._trains_policy else None
        limit = self.config.max_grad_norm or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.policy_parameters, limit)
        if self.other_parameters:
            of_others = torch.nn.utils.clip_grad_norm_(self.other_parameters, limit)
            metrics["train/grad_norm_critic"] = float(of_others)
        metrics["train/grad_norm"] = float(norm)
        metrics["train/grad_norm_clipped"] = min(float(norm), limit)
        if not (math.isfinite(metrics["train/grad_norm"]) and math.isfinite(metrics.get("train/grad_norm_critic", 0))):
            raise bad_gradient(self.trained_modules)
        self.updates += 1
        self.policy_updates += self._trains_policy
        counts = (
            self.policy_updates,
            self.updates,
        )  # of the parameter groups: the policy, and what is trained beside it
        for group, rate, count in zip(self.optimizer.param_groups, self._rates, counts, strict=False):
            group["lr"] = rate * (min(1.0, count / self.config.warmup_updates) if self.config.warmup_updates else 1.0)
        self.optimizer.step()
