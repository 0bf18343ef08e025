"""Solvers with networks: the equilibrium of Kuhn poker, reservoirs, sampled games and features."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from turngym.envs.multiagent import make_game
from turngym.envs.multiagent.equilibria import best_response, evaluate_policy, game_tree
from turngym.envs.multiagent.equilibria.solvers import Solver
from turngym.errors import ConfigError
from turngym.trainers.equilibria import NFSP, DeepCFR, DeepPSRO, Reservoir, SampledGames, game_features

KUHN = game_tree(make_game("turngym/KuhnPoker-v0"))


def solved(seed: int, iterations: int = 10) -> np.ndarray:
    solver = DeepCFR(KUHN, seed, training_steps=40, hidden=32)
    for _ in range(iterations):
        solver.step()
    return solver.average()


def test_deep_cfr_comes_near_to_the_equilibrium_of_kuhn_poker() -> None:
    found = evaluate_policy(KUHN, solved(0))
    assert found.exploitability < 0.1 and found.values[0] == pytest.approx(-1 / 18, abs=0.05)


def test_neural_fictitious_self_play_approaches_the_equilibrium_of_kuhn_poker() -> None:
    solver = NFSP(KUHN)
    for _ in range(60):
        solver.step()
    found = evaluate_policy(KUHN, solver.average())
    assert (
        found.exploitability < 0.25 < 0.458 == pytest.approx(evaluate_policy(KUHN, KUHN.uniform()).exploitability, 1e-3)
    )


def test_learned_responses_find_the_equilibrium_of_kuhn_poker() -> None:
    solver = DeepPSRO(KUHN, rounds=20)
    for _ in range(6):
        solver.step()
    assert evaluate_policy(KUHN, solver.average()).exploitability < 0.1
    assert solver.payoffs.shape == tuple(map(len, solver.populations))


@pytest.mark.parametrize(
    "kind",
    [
        partial(DeepCFR, walks=10, training_steps=5),
        partial(NFSP, games=20),
        partial(DeepPSRO, games=20, rounds=2),
    ],
)
def test_a_solver_depends_on_its_seed_alone(kind: Callable[..., Solver]) -> None:
    def policy(seed: int) -> np.ndarray:
        solver = kind(KUHN, seed=seed)
        solver.step()
        return solver.average()

    first, same, *others = map(policy, (1, 1, 2, 3, 4))
    assert (first == same).all() and any((first != other).any() for other in others)
    assert np.bincount(KUHN.set_of, first) == pytest.approx(1)


def test_sampled_games_follow_the_policies_of_their_seats() -> None:
    """Means of 40,000 games lie within four deviations of 2 points of the exact values."""
    policies = np.stack([KUHN.uniform(), best_response(KUHN, KUHN.uniform(), 1)[1]])
    kinds = np.tile([0, 1], (40_000, 1))
    moves = SampledGames(KUHN).play(policies, kinds, np.random.default_rng(0))
    seats = np.array([KUHN.sets[number].seat for number in KUHN.set_of])[moves.slots]
    assert (moves.kinds == seats).all() and (policies[moves.kinds, moves.slots] > 0).all()
    assert moves.payoffs[seats == 1].sum() / len(kinds) == pytest.approx(KUHN.values(policies[1], 1)[0], abs=0.04)
    later = moves.following >= 0
    assert (KUHN.set_of[moves.slots[later]] != moves.following[later]).all() and not moves.payoffs[later].any()
    assert all(KUHN.sets[each].seat == seat for each, seat in zip(moves.following[later], seats[later], strict=True))


def test_a_reservoir_keeps_every_sample_with_the_same_probability() -> None:
    """5 of 20 samples in batches of 4, 400 times: each is kept 100 times, with a deviation of 9."""
    random, kept = np.random.default_rng(0), np.zeros(20)
    for _ in range(400):
        memory = Reservoir(5, 1)
        for start in range(0, 20, 4):
            numbers = np.arange(start, start + 4)
            memory.extend(numbers, 1, numbers[:, None].astype(float), random)
        assert len(memory) == 5
        kept += memory.means(20)[0]
    assert kept == pytest.approx(np.full(20, 100), abs=45)


def test_samples_weigh_as_much_as_their_iteration() -> None:
    memory, random = Reservoir(10, 2), np.random.default_rng(0)
    memory.extend(np.array([1]), 1, np.array([[4.0, 0.0]]), random)
    memory.extend(np.array([1, 0]), 3, np.array([[0.0, 2.0], [1.0, 1.0]]), random)
    weights, means = memory.means(3)
    assert weights.tolist() == [3.0, 4.0, 0.0]
    assert means.tolist() == [[1.0, 1.0], [1.0, 1.5], [0.0, 0.0]]


@pytest.mark.parametrize("game", ["turngym/KuhnPoker-v0", "turngym/LeducPoker-v0"])
def test_every_information_set_has_features_of_its_own(game: str) -> None:
    tree = game_tree(make_game(game))
    found = game_features(tree)
    assert len(np.unique(found.inputs, axis=0)) == len(tree.sets)
    assert sorted(found.entries[found.legal > 0]) == list(range(tree.size))
    for number, each in enumerate(tree.sets):
        assert [found.actions[column] for column in found.columns[number]] == list(each.actions)


def test_information_sets_with_the_same_words_are_refused() -> None:
    first, second, *others = KUHN.sets
    sets = first._replace(name="a b"), second._replace(seat=first.seat, name="a\n b"), *others
    with pytest.raises(ConfigError, match=r"the same in 'a b' and 'a\\n b'"):
        game_features(replace(KUHN, sets=sets))
