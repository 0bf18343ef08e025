"""LSPO: clusters, soft labels, and a game of talk with a known equilibrium."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
import torch

from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree, make_solver
from turngym.envs.tablegames.boast import BELIEFS, BOASTS, CHALLENGES, MODEST, Boast
from turngym.errors import ConfigError
from turngym.trainers.lspo import (
    LanguageSpeech,
    LspoIteration,
    LspoSettings,
    latent_space,
    lspo,
    soft_preference_loss,
    speech_policy,
)
from turngym.trainers.lspo.latent import Vectors
from turngym.trainers.lspo.speech import Situation

TREE = game_tree(Boast())


class TableSpeech:
    """A table of log-probabilities; sentences are embedded by their class and some noise."""

    def __init__(self) -> None:
        self.tables = {each.name: torch.zeros(len(each.actions), requires_grad=True) for each in TREE.sets}
        self.places = {(each.name, text): place for each in TREE.sets for place, text in enumerate(each.actions)}

    def logprobs(self, situations: Sequence[Situation]) -> list[torch.Tensor]:
        return [
            self.tables[name].log_softmax(0)[[self.places[name, text] for text in texts]] for name, texts in situations
        ]

    def vectors(self, texts: Sequence[str]) -> Vectors:
        kinds = (MODEST, BOASTS, BELIEFS, CHALLENGES)
        centres = np.array([[text in kind for kind in kinds] for text in texts], float)
        return centres + np.random.default_rng(0).normal(0, 0.1, centres.shape)

    def parameters(self) -> Iterable[torch.Tensor]:
        return self.tables.values()


def test_boast_has_its_known_equilibrium() -> None:
    solver = make_solver("cfr+", TREE)
    for _ in range(300):
        solver.step()
    table, found = TREE.table(solver.average()), evaluate_policy(TREE, solver.average())
    assert found.values[0] == pytest.approx(1 / 3, abs=1e-3) and found.exploitability < 1e-3
    boasts = {card: sum(table["player_0"][f"your card is {card}"][text] for text in BOASTS) for card in ("high", "low")}
    assert boasts == pytest.approx({"high": 1, "low": 1 / 3}, abs=0.01)


def test_the_model_becomes_the_latent_policy_in_words() -> None:
    speech = TableSpeech()
    before = evaluate_policy(TREE, speech_policy(TREE, speech)).exploitability
    seen: list[LspoIteration] = []
    [found] = lspo(Boast(), speech, LspoSettings(updates=120, learning_rate=0.1), on_iteration=seen.append)
    assert seen == [found] and before > 0.1
    assert found.abstract < 1e-3 and found.composite < 1e-3 and found.model < 0.01
    assert [len(space.representatives) for space in found.spaces] == [2, 2]
    assert {found.spaces[0].clusters[text] for text in MODEST} != {found.spaces[0].clusters[text] for text in BOASTS}


def test_iterations_add_clusters() -> None:
    settings = LspoSettings(iterations=2, updates=1, solver_iterations=50)
    assert [len(each.spaces[0].representatives) for each in lspo(Boast(), TableSpeech(), settings)] == [2, 3]


def test_a_seat_that_says_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="player_1 said nothing in 1 games: raise games"):
        lspo(Boast(), TableSpeech(), LspoSettings(games=1, seed=2))


def test_hard_labels_would_destroy_the_mixture() -> None:
    """Negative oracle: preferring the likelier cluster outright ends in a pure strategy."""
    reference, strategy = torch.zeros(4), torch.tensor([1 / 3, 2 / 3])
    shares = {}
    for name, target in {"soft": strategy, "hard": torch.tensor([0.0, 1.0])}.items():
        policy = torch.zeros(4, requires_grad=True)
        optimiser = torch.optim.Adam([policy], lr=0.1)
        for _ in range(300):
            optimiser.zero_grad()
            soft_preference_loss(policy, reference, [0, 0, 1, 1], target).backward()
            optimiser.step()
        shares[name] = policy.detach().softmax(0)[2:].sum().item()
    assert shares["soft"] == pytest.approx(2 / 3, abs=0.01) and shares["hard"] > 0.99


@pytest.mark.parametrize("beta", [0.1, 1.0])
def test_the_minimum_does_not_depend_on_beta(beta: float) -> None:
    reference = torch.tensor([0.5, 0.2, 0.2, 0.1]).log()
    best = torch.tensor([0.214286, 0.085714, 0.466667, 0.233333]).log().requires_grad_()
    soft_preference_loss(best, reference, [0, 0, 1, 1], torch.tensor([0.3, 0.7]), beta).backward()
    assert best.grad is not None and best.grad.abs().max() < 1e-6
    moved = best.detach() + torch.tensor([0.5, 0.0, 0.0, 0.0])
    moved.requires_grad_()
    soft_preference_loss(moved, reference, [0, 0, 1, 1], torch.tensor([0.3, 0.7]), beta).backward()
    assert moved.grad is not None and moved.grad.abs().max() > 1e-4


def test_one_cluster_gives_no_pairs() -> None:
    policy = torch.zeros(3, requires_grad=True)
    loss = soft_preference_loss(policy, torch.zeros(3), [0, 0, 0], torch.ones(1))
    loss.backward()
    assert loss.item() == 0 and policy.grad is not None and not policy.grad.any()


def test_clusters_are_found_whatever_the_order_and_seed() -> None:
    generator = np.random.default_rng(1)
    vectors = np.repeat(np.eye(3) * 5, 4, axis=0) + generator.normal(0, 0.2, (12, 3))
    texts = [f"sentence {number}" for number in range(12)]
    for seed in range(5):
        order = generator.permutation(12)
        space = latent_space([texts[each] for each in order], vectors[order], 3, seed)
        labels = [space.clusters[text] for text in texts]
        assert len(set(labels)) == 3 and all(len(set(labels[start : start + 4])) == 1 for start in (0, 4, 8))


def test_equal_embeddings_make_one_cluster_and_none_is_refused() -> None:
    assert latent_space(["a", "b"], np.ones((2, 2)), 2).representatives == ("a",)
    with pytest.raises(ConfigError, match="0 speeches need"):
        latent_space([], np.zeros((0, 2)), 2)


def test_a_known_sentence_in_the_name_of_a_set_becomes_its_representative() -> None:
    space = latent_space(["I raise", "I raise it", "no"], np.array([[0.0], [0.1], [9.0]]), 2)
    assert space.translated("he says: I raise it") == f"he says: {space.representative('I raise')}"
    assert space.translated("he says nothing") == "he says nothing"


@pytest.mark.integration
def test_a_language_model_ends_near_the_equilibrium() -> None:
    texts = [text for each in TREE.sets for text in (each.name, *each.actions)]
    tokenizer = build_tokenizer(texts, 400, words_apart=True)
    network = build_model(tokenizer, EmbeddedConfig(hidden_size=32, layers=1, heads=2), 0)
    speech = LanguageSpeech(LanguageModel(network, tokenizer, "embedded"))
    situations = [(each.name, each.actions) for each in TREE.sets]
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for _ in range(40):
        optimiser.zero_grad()
        (-torch.stack(speech.logprobs(situations)).mean()).backward()
        optimiser.step()
    before = evaluate_policy(TREE, speech_policy(TREE, speech)).exploitability
    [found] = lspo(Boast(), speech, LspoSettings(learning_rate=3e-3))
    assert before > 0.15 and found.abstract < 1e-3 and found.model < 0.05
