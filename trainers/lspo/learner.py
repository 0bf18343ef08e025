"""The learner of LSPO runs: speeches, clusters, the abstract game, and preference training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turngym.agents.episodes.situations import SITUATION, Situation
from turngym.agents.models.action_probabilities import sequence_logprobs
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.seeding import stream, stream_seed
from turngym.trainers.core.finite import check_weights
from turngym.trainers.core.update_config import default_micro_batch_tokens
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.optimizer import Schedule
from turngym.trainers.learners.lspo import LSPO, LSPOConfig
from turngym.trainers.loop.setup import policy_agent
from turngym.trainers.loop.tasks.game_task import rules_of
from turngym.trainers.lspo.abstract_game import LatentSolver, Talk, strategy_name
from turngym.trainers.lspo.latent import latent_space
from turngym.trainers.lspo.preferences import soft_preference_loss
from turngym.trainers.lspo.speech import LanguageSpeech
from turngym.trainers.settings.config import TrainConfig
from turngym.wrappers.actions.action_format import action_format


@dataclass(frozen=True)
class Recorded:
    """A decision of the policy.

    Args:
        role: The role.
        seat: The seat.
        prompt_ids: The prompt.
        situation: The decision in the abstract game.
    """

    role: str
    seat: str
    prompt_ids: tuple[int, ...]
    situation: Situation


@dataclass(frozen=True)
class Comparison:
    """Answers to one prompt that are compared.

    Args:
        rows: Prompt and completion of each.
        clusters: Number of the abstract action of each.
        strategy: [abstract actions] probabilities in the solution.
    """

    rows: list[tuple[tuple[int, ...], tuple[int, ...]]]
    clusters: list[int]
    strategy: Tensor


class LspoLearner(Learner):
    """Trains the policy towards the solution of the game between latent strategies.

    Args:
        run: Settings of the run.
        args: Arguments of :class:`.Learner`.
        kwargs: Further ones.

    Raises:
        ConfigError: Several processes train together.
    """

    def __init__(self, run: TrainConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.ranks.size > 1:
            raise ConfigError(f"{run.algorithm} trains in one process, got {self.ranks.size}: leave out torchrun.")
        self.run = run
        updates = run.iterations * self._settings.updates
        self._schedule = Schedule(self.optimizer, self.config, updates, updates)

    @property
    def _settings(self) -> LSPOConfig:
        assert isinstance(self.algorithm, LSPO)
        return self.algorithm.config

    def update(self, trajectories: Sequence[Trajectory], iteration: int) -> dict[str, float]:
        """Solve the abstract game of the recorded speeches and train towards its solution; returns metrics.

        Raises:
            ConfigError: The policy has said nothing legal.
        """
        recorded = list(_recorded(trajectories))
        talks = self._talks(recorded, iteration)
        solver = LatentSolver(rules_of(self.run), talks, stream_seed("lspo", self.seed, iteration) % 2**31)
        for _ in range(self._settings.solver_steps):
            solver.step()
        self._keep(solver)
        generator = stream("preferences", self.seed, iteration)
        comparisons = list(self._comparisons(recorded, solver, generator))
        metrics = {
            "lspo/speeches": float(sum(len(talk.space.clusters) for talk in talks.values())),
            "lspo/strategies": float(max(len(talk.names) for talk in talks.values())),
            "lspo/information_sets": float(len(solver.weights)),
            "lspo/comparisons": float(len(comparisons)),
        }
        metrics.update(self._train(comparisons, generator))
        check_weights(self.trained_modules)
        self.publish()
        return {**metrics, "train/updates": float(self.updates)}

    def _talks(self, recorded: Sequence[Recorded], iteration: int) -> dict[str, Talk]:
        """Return role -> its speeches, clustered by the policy's own hidden states."""
        said: dict[str, dict[str, set[str]]] = {}
        for each in recorded:
            if each.situation.is_speech:
                said.setdefault(each.role, {}).setdefault(each.seat, set()).add(each.situation.action)
        if not said:
            rollout = self.run.rollout
            raise ConfigError(
                f"{self.run.algorithm} trains speeches, and the policy has said nothing legal in the "
                f"{rollout.groups * rollout.group_size} games of iteration {iteration + 1}: start a new run with "
                "more --warmup.demonstrations or --warmup.epochs, or with a larger --rollout.max-new-tokens (here "
                f"{rollout.max_new_tokens})."
            )
        settings, found = self._settings, {}
        clusters = min(settings.clusters + iteration, settings.most_clusters)
        for role, by_seat in sorted(said.items()):
            texts = sorted(set().union(*by_seat.values()))
            vectors = LanguageSpeech(self.model, settings.layer).vectors(texts)
            space = latent_space(texts, vectors, clusters, self.seed)
            found[role] = Talk(space, {seat: sorted(own) for seat, own in sorted(by_seat.items())})
        return found

    def _keep(self, solver: LatentSolver) -> None:
        """Keep the solution for checkpoints."""
        assert isinstance(self.algorithm, LSPO)
        spaces = {role: talk.space for role, talk in solver.talks.items()}
        self.algorithm.solution = {
            "strategies": {
                role: {strategy_name(place): text for place, text in enumerate(space.representatives)}
                for role, space in spaces.items()
            },
            "speeches": {role: space.clusters for role, space in spaces.items()},
            "policy": {name: solver.average(name) for name in sorted(solver.weights)},
        }

    def _comparisons(
        self, recorded: Sequence[Recorded], solver: LatentSolver, generator: np.random.Generator
    ) -> Iterator[Comparison]:
        """Yield decisions at which the solution is known and two abstract actions or more are possible."""
        decisions = list({(one.prompt_ids, one.role): one for one in recorded}.values())
        most = self._settings.updates * self._settings.decisions
        decisions = [decisions[place] for place in generator.permutation(len(decisions))[:most].tolist()]
        agent = policy_agent(self.run, self.model)
        written = action_format(self.run.rollout.format, solver.game.finds_action).written
        end = int(self.model.tokenizer.eos_token_id)
        for each in decisions:
            strategy = solver.average(solver.views.name(each.role, each.situation.view))
            if strategy is None or not each.prompt_ids:
                continue
            names, answers = list(strategy), self._answers(each, solver, generator)
            known = [(text, names.index(name)) for text, name in answers if name in strategy]
            if len({cluster for _, cluster in known}) < 2:
                continue
            texts = [written(text, "", agent.thinking) for text, _ in known]
            rows = [(each.prompt_ids, (*agent.builder.answer(text), end)) for text in texts]
            yield Comparison(rows, [cluster for _, cluster in known], torch.tensor(list(strategy.values())))

    def _answers(self, each: Recorded, solver: LatentSolver, generator: np.random.Generator) -> list[tuple[str, str]]:
        """Return possible answers with their abstract actions: all legal actions, or some speeches of the seat."""
        if not each.situation.is_speech:
            return [(text, name) for name, texts in each.situation.actions.items() for text in texts]
        talk = solver.talks[each.role]
        said, most = talk.said.get(each.seat, ()), self._settings.candidates
        if len(said) > most:
            said = [said[place] for place in generator.permutation(len(said))[:most].tolist()]
        return [(text, strategy_name(talk.space.clusters[text])) for text in said]

    def _train(self, comparisons: Sequence[Comparison], generator: np.random.Generator) -> dict[str, float]:
        """Make the updates of an iteration; the reference is the policy before them."""
        settings, losses, norms = self._settings, [], []
        with torch.no_grad():
            parts = self._parts(comparisons, range(len(comparisons)))
            references = [each for part in parts for each in self._scored(comparisons, part)]
        for _ in range(settings.updates if comparisons else 0):
            chosen = generator.permutation(len(comparisons))[: settings.decisions].tolist()
            self.optimizer.zero_grad(set_to_none=True)
            total = 0.0
            for part in self._parts(comparisons, chosen):
                loss = torch.stack(list(self._losses(comparisons, part, references))).sum() / len(chosen)
                with self.masters.collecting():
                    (loss * self.loss_scale.value).backward()
                total += float(loss.detach())
            metrics: dict[str, float] = {}
            self._apply({}, metrics)
            losses.append(total)
            norms.append(metrics["train/grad_norm"])
        if not losses:
            return {}
        return {"loss/preferences": float(np.mean(losses)), "train/grad_norm": float(np.mean(norms))}

    def _scored(self, comparisons: Sequence[Comparison], part: Sequence[int]) -> list[Tensor]:
        """Return the log-probabilities of the answers of some comparisons."""
        rows = [row for place in part for row in comparisons[place].rows]
        found = torch.stack(sequence_logprobs(self.model.with_network(self.network), rows, self.temperature))
        return list(found.split([len(comparisons[place].rows) for place in part]))

    def _losses(
        self, comparisons: Sequence[Comparison], part: Sequence[int], references: Sequence[Tensor]
    ) -> Iterator[Tensor]:
        for place, logprobs in zip(part, self._scored(comparisons, part), strict=True):
            each = comparisons[place]
            strategy, reference = each.strategy.to(logprobs.device), references[place]
            preference = soft_preference_loss(logprobs, reference, each.clusters, strategy, self._settings.beta)
            lost = logprobs.logsumexp(0) - reference.logsumexp(0)
            yield preference + self._settings.mass_coef * lost**2

    def _parts(self, comparisons: Sequence[Comparison], chosen: Sequence[int]) -> Iterator[list[int]]:
        """Yield comparisons whose answers go through the network together."""
        most = self.config.max_micro_batch_tokens or default_micro_batch_tokens(self.model.network.device.type)
        part: list[int] = []
        rows = longest = 0
        for place in chosen:
            own = comparisons[place].rows
            length = max(len(prompt) + len(ids) for prompt, ids in own)
            if part and (rows + len(own)) * max(longest, length) > most:
                yield part
                part, rows, longest = [], 0, 0
            part.append(place)
            rows, longest = rows + len(own), max(longest, length)
        if part:
            yield part


def _recorded(trajectories: Sequence[Trajectory]) -> Iterator[Recorded]:
    """Yield the legal decisions of the policy."""
    for trajectory in trajectories:
        if trajectory.fault:
            continue
        for turn in trajectory.turns:
            situation = Situation.of_text(str(turn.columns[SITUATION]))
            if situation.action and turn.action_is_valid:
                yield Recorded(trajectory.role, turn.agent, turn.prompt_ids, situation)
