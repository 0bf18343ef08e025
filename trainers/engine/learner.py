"""The learner: from trajectories to credit, loss and weight updates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import cast

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.mixture import mixed_model
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError, DivergenceError
from turngym.lazy import Tensor, nn, torch
from turngym.seeding import stream
from turngym.trainers.core.algorithm import Algorithm, LossInputs, LossOutput, Need
from turngym.trainers.core.finite import bad_gradient, bad_loss, check_weights, located
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.adapters import adapters_off, has_adapters
from turngym.trainers.engine.checkpointing import checkpointed_layers, checkpointing, run_apart
from turngym.trainers.engine.compiling import CompiledLayers
from turngym.trainers.engine.head import head_of
from turngym.trainers.engine.layouts.check import require_layout
from turngym.trainers.engine.layouts.pictures import layout_for
from turngym.trainers.engine.optimizer import Schedule, clip, make_optimizer, parameter_groups
from turngym.trainers.engine.policy_statistics import PolicyStatistics, digest, table_metrics
from turngym.trainers.engine.precision import LossScale, Masters
from turngym.trainers.engine.prepared import PreparedBatch, prepare
from turngym.trainers.engine.ranks.spread import Replicated, Spread
from turngym.trainers.engine.scoring import Critic
from turngym.trainers.engine.sharing import frozen_parameters, own_tensors
from turngym.trainers.engine.teachers import Teacher, Teaching, frozen_copy, make_teacher, require_teacher

__all__ = ["Learner", "UpdateConfig"]


class Learner:
    """Owner of the policy's weights, the critic, the reference policy and the optimiser.

    Args:
        model: The policy.
        algorithm: Method that assigns credit and defines the loss.
        config: Updates of the weights.
        temperature: The sampler's temperature.
        seed: Seed of the run, for sampling minibatches.
        merge_rows: If False, every turn is its own sequence.
        iterations: Iterations of the whole run, for learning rate schedules.
        spread: Distribution of the networks over ranks, which all receive the same episodes; one rank by default.
        teaching: Choice of the teacher, for methods that learn from one.
    """

    def __init__(
        self,
        model: LanguageModel,
        algorithm: Algorithm[object],
        config: UpdateConfig,
        temperature: float = 1.0,
        seed: int = 0,
        merge_rows: bool = True,
        iterations: int = 0,
        spread: Spread | None = None,
        teaching: Teaching | None = None,
    ) -> None:
        head_of(model.network)  # rejects a model that cannot be scored before any episode is played
        require_layout(model.network, layout_for(model, config.layout))
        self.model = model
        """The sampling policy, held completely by every rank."""
        self.algorithm = algorithm
        self.config = config
        self.temperature = temperature
        self.seed = seed
        self.merge_rows = merge_rows
        self.spread = spread or Replicated()
        self.ranks = self.spread.ranks
        self.network = self.spread.placed(model.network)
        """The trained policy; the sampling policy receives its weights after every iteration."""
        if self.network is model.network and (config.compile or config.gradient_checkpointing):
            self.network = run_apart(model.network)
        self.updates = 0
        """Number of updates, including those of the critic only."""
        self.policy_updates = 0
        """Number of updates of the policy, for the warm-up of its learning rate."""
        self.sampler: nn.Module | None = None
        """Frozen copy of the policy used for sampling; None if the policy itself samples."""
        self.advantages = torch.zeros(0)
        """Advantage of each sampled token of the last batch, in table order."""
        self._trains_policy = True
        self._statistics = PolicyStatistics(turn_table([]))
        values = Need.VALUES in algorithm.needs
        self.critic = self.spread.placed(Critic(model.network), ["head"]) if values else None
        self.reference = self._reference() if Need.REFERENCE_LOGPROBS in algorithm.needs else None
        self.teacher = self._teacher(teaching) if Need.TEACHER_LOGPROBS in algorithm.needs else None
        trained = [self.network, *([self.critic] if self.critic else [])]
        self._compiled = CompiledLayers(trained if config.compile else [])
        self._checkpointed = [
            layer
            for module in (trained if config.gradient_checkpointing else [])
            for layer in checkpointed_layers(module)
        ]
        policy = [p for p in self.network.parameters() if p.requires_grad]
        critic = [p for p in self.critic.parameters() if p.requires_grad] if self.critic else []
        extra = [p for module in algorithm.modules().values() for p in module.parameters()]
        self.policy_parameters, self.other_parameters = policy, [*critic, *extra]
        self.masters = Masters([*policy, *critic, *extra], on_host=config.offload)
        """Parameters of the optimiser: float32 copies of 16-bit parameters, and all other parameters."""
        self._policy_masters = [self.masters.of(p) for p in self.policy_parameters]
        self._other_masters = [self.masters.of(p) for p in self.other_parameters]
        self.optimizer = make_optimizer(parameter_groups(self._policy_masters, self._other_masters, config), config)
        per_iteration = config.epochs * config.minibatches
        of_policy = sum(algorithm.trains_policy(iteration) for iteration in range(iterations))
        self._schedule = Schedule(self.optimizer, config, of_policy * per_iteration, iterations * per_iteration)
        self.loss_scale = LossScale(model.network.dtype == torch.float16)

    @property
    def trained_modules(self) -> dict[str, nn.Module]:
        """Name -> network whose weights are updated."""
        critic: dict[str, nn.Module] = {} if self.critic is None else {"critic": self.critic}
        return {"policy": self.network, **critic, **{f"module.{k}": m for k, m in self.algorithm.modules().items()}}

    def _reference(self) -> nn.Module:
        """Return a frozen copy of the policy; with adapters and no refresh, the policy with adapters disabled."""
        if has_adapters(self.network) and not self.algorithm.reference_every:
            return self.network
        return self.spread.placed(frozen_copy(self.model.network))

    def _teacher(self, teaching: Teaching | None) -> Teacher:
        require_teacher(type(self.algorithm).__name__, teaching)
        stays = None if self.algorithm.reference_every else self.reference
        return make_teacher(cast("Teaching", teaching), self.model, self.network, self.spread, stays)

    def _refresh_reference(self, iteration: int) -> None:
        """Refresh the reference policy with this iteration's sampling policy, if the algorithm requires it."""
        every = self.algorithm.reference_every
        if self.reference is not None and every and iteration and iteration % every == 0:
            self.reference = self._reference()

    def hold_back_sampler(self) -> None:
        """Freeze the current weights for sampling until the next call, regardless of updates."""
        if self.sampler is None:
            self.sampler = frozen_copy(self.model.network)
        network = self.model.network
        own = own_tensors(network, frozen_parameters(network))  # frozen weights are shared
        self.sampler.load_state_dict(own, strict=False)

    def update(self, trajectories: Sequence[Trajectory], iteration: int) -> dict[str, float]:
        """Assign credit to the trajectories of one iteration and update the weights; returns metrics."""
        self.advantages = torch.zeros(0)
        self._statistics = PolicyStatistics(turn_table([]))
        self._refresh_reference(iteration)
        batch = self.prepare(trajectories, iteration)
        if not batch.num_rows:
            return {"train/updates": float(self.updates), "train/rows": 0.0}
        self.ranks.require_equal("episodes", lambda: digest(batch.table))
        self.advantages = batch.credit.advantages
        self._trains_policy = self.algorithm.trains_policy(iteration)
        metrics = {f"credit/{name}": float(value) for name, value in batch.credit.metrics.items()}
        metrics.update(table_metrics(batch.table))
        self._statistics = PolicyStatistics(batch.table, self.ranks)
        self.spread.release(self.network, self.model.network)
        try:
            metrics.update(self._run_epochs(batch, iteration))
            check_weights(self.trained_modules)
        except DivergenceError as error:
            raise located(error, batch.trajectories) from None
        self.publish()
        if self.teacher is not None:
            self.teacher.follow(self.network, self.masters.of)
        self.algorithm.update_state(batch.trajectories, batch.credit)
        self._train_modules(batch)
        metrics.update(self._statistics.metrics())
        metrics["train/updates"] = float(self.updates)
        metrics["train/rows"] = float(batch.num_rows)
        metrics["train/distinct_sequences"] = float(batch.num_sequences)
        if self.loss_scale.is_needed:
            metrics["train/loss_scale"] = self.loss_scale.value
        return metrics

    @property
    def log_ratios(self) -> Tensor:
        """Log-ratio to the sampling policy of each token of the last batch's last update, on this rank."""
        return self._statistics.log_ratios

    def mixed(self, model: LanguageModel, weight: float) -> LanguageModel:
        """Return a model that samples from the geometric mixture of a policy and the reference.

        Args:
            model: The policy as it samples.
            weight: Exponent of the reference's probabilities.

        Raises:
            ConfigError: The method keeps no reference, or the policy samples elsewhere.
        """
        if self.reference is None:
            raise ConfigError(f"{type(self.algorithm).__name__} samples with a reference and does not need one.")
        if self.reference is self.network:
            return mixed_model(model, model.network, weight, lambda: adapters_off(model.network))
        return mixed_model(model, self.reference, weight)

    def publish(self) -> None:
        """Copy the trained weights to the sampling policy."""
        self.spread.publish(self.network, self.model.network)

    def prepare(self, trajectories: Sequence[Trajectory], iteration: int = 0) -> PreparedBatch:
        """Assign credit to trajectories and lay them out for the losses of an iteration."""
        return prepare(
            trajectories,
            self.model.with_network(self.network),
            self.algorithm,
            temperature=self.temperature,
            critic=self.critic,
            reference=self.reference,
            teacher=self.teacher,
            exclusion=self.config.exclusion,
            old_logprobs="own" if self._makes_one_update else self.config.old_logprobs,
            first_pass=lambda sequences: self._updates_of(sequences, iteration, 0),
            merge_rows=self.merge_rows,
            max_tokens=self.config.max_micro_batch_tokens,
            layout=self.config.layout,
            spread=self.spread,
        )

    @property
    def _makes_one_update(self) -> bool:
        """True if an iteration has a single update, whose own log-probabilities are the old ones of ratios."""
        return self.config.old_logprobs == "trainer" and self.config.epochs == self.config.minibatches == 1

    def _updates_of(self, sequences: Sequence[int], iteration: int, epoch: int) -> list[list[int]]:
        """Return the sequences of each update of a pass over the batch, distributed at random."""
        order = stream("minibatches", self.seed, iteration, epoch).permutation(sequences)
        return [
            [int(s) for s in order[k :: self.config.minibatches]]
            for k in range(min(self.config.minibatches, len(sequences)))
        ]

    def _run_epochs(self, batch: PreparedBatch, iteration: int) -> dict[str, float]:
        totals: dict[str, float] = defaultdict(float)
        count = 0
        scored = batch.sequences
        for epoch in range(self.config.epochs):
            parts = self._updates_of(scored, iteration, epoch)
            for part in parts:
                if Need.CURRENT_LOGPROBS in self.algorithm.needs:
                    batch = batch.refreshed(self.algorithm)
                metrics = self._one_update(batch, part, scale=float(len(parts)))
                count += 1
                for name, value in metrics.items():
                    totals[name] += value
        return {name: value / count for name, value in totals.items()}

    def _one_update(self, batch: PreparedBatch, sequences: Sequence[int], scale: float) -> dict[str, float]:
        """Make one update on a minibatch.

        Every sequence is in one of ``scale`` random minibatches, so the minibatch's terms times ``scale`` are an
        unbiased estimate of the whole batch's, for any normalisation and number of duplicates.
        """
        self.optimizer.zero_grad(set_to_none=True)
        metrics: dict[str, float] = defaultdict(float)
        probes: dict[str, list[Tensor]] = {}

        def accumulate() -> None:
            errors = []
            for inputs, counts in batch.passes(sequences, scale):
                if counts:
                    self._statistics.add(inputs)
                errors += self._backward(self.algorithm.loss(inputs), inputs, metrics, probes)
            if errors:
                raise errors[0]

        with checkpointing(self._checkpointed), self._compiled.active():
            self.spread.together(accumulate)
        metrics = self._sum_over_ranks(metrics, probes)
        self._apply(probes, metrics)
        self._statistics.end_update()
        return metrics

    def _sum_over_ranks(self, metrics: Mapping[str, float], probes: dict[str, list[Tensor]]) -> dict[str, float]:
        """Sum the gradients over ranks, separately for probes, and return the summed metrics."""
        for name in sorted({name for names in self.ranks.gathered(sorted(probes)) for name in names}):
            self.spread.sum_probe(probes.setdefault(name, [torch.zeros_like(p) for p in self._policy_masters]))
        self.spread.sum_gradients([*self._policy_masters, *self._other_masters])
        return self.ranks.sum_numbers(metrics)

    def _backward(
        self, output: LossOutput, inputs: LossInputs, metrics: dict[str, float], probes: dict[str, list[Tensor]]
    ) -> list[DivergenceError]:
        """Add one micro-batch's gradients, separately for probes, and its metrics.

        Returns:
            The error of its loss, not raised immediately because other ranks wait for the gradients.
        """
        for name, term in output.probes.items():
            number = self.spread.anchored(term.total(inputs) * self.loss_scale.value, inputs)
            found = self.spread.gradients(number, self.policy_parameters, self.other_parameters)
            mine = probes.setdefault(name, [torch.zeros_like(p) for p in self._policy_masters])
            for total, gradient in zip(mine, found, strict=True):
                if gradient is not None:
                    total += gradient.to(total) / self.loss_scale.value
        loss = self.spread.anchored(output.total(inputs), inputs)
        if loss.requires_grad:
            with self.masters.collecting():
                (loss * self.loss_scale.value).backward()
        named = [*output.terms.items(), *output.metrics.items()]
        totals = [term.total(inputs).detach() for _, term in named]
        number, *values = torch.stack([each.double() for each in [loss.detach(), *totals]]).tolist()  # waits once
        for (name, _), value in zip(named, values, strict=True):
            metrics[f"loss/{name}"] += value
        return [] if math.isfinite(number) else [bad_loss(output, inputs)]

    def _apply(self, probes: Mapping[str, Sequence[Tensor]], metrics: dict[str, float]) -> None:
        self.loss_scale.unscale([*self._policy_masters, *self._other_masters])
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._policy_masters]
        changed = self.algorithm.transform_gradients(gradients, probes, metrics)
        metrics.update({f"train/{name}": value for name, value in changed.metrics.items()})
        for parameter, gradient in zip(self._policy_masters, changed.values, strict=True):
            parameter.grad = gradient if self._trains_policy else None
        limit = self.config.max_grad_norm or float("inf")
        norms = [clip(self._policy_masters, limit)]
        if self._other_masters:
            norms.append(clip(self._other_masters, limit))
            metrics["train/grad_norm_critic"] = norms[1]
        metrics["train/grad_norm"] = norms[0]
        metrics["train/grad_norm_clipped"] = min(norms[0], limit)
        is_finite = all(map(math.isfinite, norms))
        if self.loss_scale.skips(is_finite):
            return
        if not is_finite:
            raise bad_gradient(self._gradients())
        self.updates += 1
        self.policy_updates += self._trains_policy
        self._schedule.set_rates(self.policy_updates, self.updates)
        self.optimizer.step()
        self.masters.publish()

    def _train_modules(self, batch: PreparedBatch) -> None:
        """Update the method's extra networks; every rank computes the same updates."""
        for loss in self.algorithm.module_losses(batch.credit):
            self.optimizer.zero_grad(set_to_none=True)
            with self.masters.collecting():
                (loss / self.ranks.size).backward()
            self.spread.sum_gradients(self._other_masters)
            if not math.isfinite(clip(self._other_masters, self.config.max_grad_norm or float("inf"))):
                raise bad_gradient(self._gradients())
            self.optimizer.step()
            self.masters.publish()

    def _gradients(self) -> dict[str, Tensor]:
        """Return the gradients of the trained parameters that have one, by name."""
        found = {
            f"{key}.{name}": self.masters.of(parameter).grad
            for key, module in self.trained_modules.items()
            for name, parameter in module.named_parameters()
        }
        return {name: gradient for name, gradient in found.items() if gradient is not None}
