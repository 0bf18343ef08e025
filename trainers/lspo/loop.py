"""Latent space policy optimisation: record speeches, cluster, solve the abstract game, train the model towards it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from turngym.envs.multiagent.equilibria import GameTree, InformationSet, evaluate_policy, game_tree, make_solver
from turngym.envs.multiagent.equilibria.tree import Floats
from turngym.envs.multiagent.game import Game
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.options import Amount, Natural, Options, Positive, Share
from turngym.trainers.lspo.latent import LatentSpace, latent_space
from turngym.trainers.lspo.preferences import soft_preference_loss
from turngym.trainers.lspo.speech import SpeechModel


class LspoSettings(Options):
    """Settings of :func:`lspo`."""

    iterations: Positive = 1
    """Rounds of recording, solving and training; each has one cluster more than the last."""
    games: Positive = 500
    """Games to record in each iteration."""
    clusters: Positive = 2
    """Latent strategies of each seat in the first iteration."""
    diversity: Share = 0.5
    """Probability that a recorded sentence is drawn uniformly instead of from the model."""
    solver_iterations: Positive = 1000
    """Iterations of CFR+ in the abstract game."""
    updates: Natural = 200
    """Optimiser steps of preference training in each iteration."""
    learning_rate: Amount = 1e-3
    """Learning rate of AdamW."""
    beta: Amount = 1.0
    """Scale of the log-ratios in the loss."""
    seed: Natural = 0
    """Seed of games and clusters."""


@dataclass(frozen=True)
class LspoIteration:
    """Results of one iteration.

    Args:
        spaces: Latent space of each seat.
        abstract: Exploitability of the latent policy in the abstract game.
        composite: Exploitability in the whole game of the latent policy with the model's words; higher than
            ``abstract`` where the choice of words within a cluster reveals what the seat knows.
        model: Exploitability in the whole game of the model alone, after training.
        loss: Last loss.
    """

    spaces: tuple[LatentSpace, ...]
    abstract: float
    composite: float
    model: float
    loss: float


def lspo(
    game: Game,
    speech: SpeechModel,
    settings: LspoSettings | None = None,
    on_iteration: Callable[[LspoIteration], None] = lambda found: None,
) -> list[LspoIteration]:
    """Train a model of speech towards an equilibrium of a game in which every action is a sentence.

    Latent space policy optimisation (Xu et al. 2025, arXiv 2502.04686): sentences that were said are clustered by their
    embeddings; with one representative for each cluster the game is small enough for CFR; preference training with soft
    labels moves the model towards the average policy. The model then records the sentences of the next iteration.

    Args:
        game: A game small enough for :func:`turngym.envs.multiagent.equilibria.game_tree`.
        speech: The model; its weights are changed.
        settings: Settings.
        on_iteration: Called after each iteration.

    Raises:
        ConfigError: The game is too large, or a seat has said nothing.
    """
    settings = settings or LspoSettings()
    tree, found = game_tree(game), []
    for number in range(settings.iterations):
        generator = np.random.default_rng([settings.seed, number])
        recorded = _recorded(tree, _mixed(tree, speech_policy(tree, speech), settings.diversity), settings, generator)
        for name, texts in zip(tree.seats, recorded, strict=True):
            if not texts:
                raise ConfigError(f"{name} said nothing in {settings.games} games: raise games or diversity.")
        spaces = tuple(
            latent_space(texts, speech.vectors(texts), settings.clusters + number, settings.seed) for texts in recorded
        )
        abstract, latent = _solved(game, spaces, settings.solver_iterations)
        strategies = _strategies(tree, abstract, latent, spaces)
        composite = _composed(tree, speech_policy(tree, speech), strategies, spaces)
        loss = _trained(tree, speech, strategies, spaces, settings)
        result = LspoIteration(
            spaces,
            evaluate_policy(abstract, latent).exploitability,
            evaluate_policy(tree, composite).exploitability,
            evaluate_policy(tree, speech_policy(tree, speech)).exploitability,
            loss,
        )
        on_iteration(result)
        found.append(result)
    return found


def speech_policy(tree: GameTree, speech: SpeechModel) -> Floats:
    """Return the policy of a model that says one of the legal sentences, by their probabilities."""
    with torch.no_grad():
        logprobs = speech.logprobs([(each.name, each.actions) for each in tree.sets])
    return np.concatenate([each.double().softmax(0).cpu().numpy() for each in logprobs])


def _mixed(tree: GameTree, policy: Floats, share: float) -> Floats:
    return share * tree.uniform() + (1 - share) * policy


def _recorded(
    tree: GameTree, policy: Floats, settings: LspoSettings, generator: np.random.Generator
) -> list[list[str]]:
    """Return the different sentences that each seat has said in some games, in alphabetical order."""
    said: list[set[str]] = [set() for _ in tree.seats]
    edges = tree.edges(policy)
    ends = np.setdiff1d(np.arange(len(edges)), tree.parent)
    chances = tree.reach(edges)[ends]
    for node in generator.choice(ends, size=settings.games, p=chances / chances.sum()).tolist():
        while node > 0:
            slot = int(tree.slot[node])
            if slot >= 0:
                each = tree.sets[int(tree.set_of[slot])]
                said[each.seat].add(each.actions[slot - each.start])
            node = int(tree.parent[node])
    return [sorted(texts) for texts in said]


def _solved(game: Game, spaces: Sequence[LatentSpace], iterations: int) -> tuple[GameTree, Floats]:
    """Return the game whose actions are the representatives of clusters, and the average policy of CFR+."""
    tree = game_tree(
        game, choose=lambda seat, legal: tuple([text for text in legal if text in spaces[seat].representatives])
    )
    solver = make_solver("cfr+", tree)
    for _ in range(iterations):
        solver.step()
    return tree, solver.average()


def _strategies(
    tree: GameTree, abstract: GameTree, latent: Floats, spaces: Sequence[LatentSpace]
) -> dict[int, list[float]]:
    """Return the latent strategy at each information set of the whole game that stands for one of the abstract game."""
    table, found = abstract.table(latent), {}
    for number, each in enumerate(tree.sets):
        name = each.name
        for space in spaces:
            name = space.translated(name)
        known = table[tree.seats[each.seat]].get(name)
        if known is not None:
            found[number] = [known.get(representative, 0.0) for representative in spaces[each.seat].representatives]
    return found


def _known(each: InformationSet, space: LatentSpace) -> list[int]:
    """Return the places of the sentences that have a cluster."""
    return [place for place, text in enumerate(each.actions) if text in space.clusters]


def _composed(
    tree: GameTree, policy: Floats, strategies: dict[int, list[float]], spaces: Sequence[LatentSpace]
) -> Floats:
    """Return the policy that draws a cluster from the latent strategy and a sentence of it from the model."""
    found = policy.copy()
    for number, strategy in strategies.items():
        each, space = tree.sets[number], spaces[tree.sets[number].seat]
        places = _known(each, space)
        clusters = np.array([space.clusters[each.actions[place]] for place in places])
        entries = each.start + np.array(places)
        masses = np.bincount(clusters, policy[entries], minlength=len(strategy))
        found[each.start : each.start + len(each.actions)] = 0.0
        found[entries] = policy[entries] / masses[clusters] * np.array(strategy)[clusters]
    return tree.normalised(found)


def _trained(
    tree: GameTree,
    speech: SpeechModel,
    strategies: dict[int, list[float]],
    spaces: Sequence[LatentSpace],
    settings: LspoSettings,
) -> float:
    """Train the model towards the latent strategies, and return the last loss."""
    situations, clusters = [], []
    for number in strategies:
        each, space = tree.sets[number], spaces[tree.sets[number].seat]
        sentences = tuple([each.actions[place] for place in _known(each, space)])
        situations.append((each.name, sentences))
        clusters.append([space.clusters[text] for text in sentences])
    with torch.no_grad():
        reference = speech.logprobs(situations)
    targets = [torch.tensor(strategy) for strategy in strategies.values()]
    optimiser = torch.optim.AdamW(speech.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    loss: Tensor = torch.zeros(())
    for _ in range(settings.updates):
        parts = zip(speech.logprobs(situations), reference, clusters, targets, strict=True)
        loss = torch.stack([soft_preference_loss(*part, beta=settings.beta) for part in parts]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.detach())
