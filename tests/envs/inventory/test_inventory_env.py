"""Inventory: rewards, scores, answers, snapshots, hidden demand."""

import pytest

from turngym.envs.inventory.env import Inventory, best_orders, profit_without_orders
from turngym.errors import ConfigError
from turngym.options import OptionError


def played(env: Inventory, seed: int, answer: str = "") -> tuple[float, float, int]:
    """Return the sum of rewards, the score and the success of an episode."""
    _, info = env.reset(seed=seed)
    total = 0.0
    while info["success"] < 0:
        _, reward, _, _, info = env.step(answer or env.expert_action())
        total += reward
    return total, info["score"], info["success"]


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_score_is_the_share_of_the_optimum(stages: int) -> None:
    env, nothing = Inventory(stages=stages), " ".join(["0"] * stages)
    best, lowest = best_orders(stages, 20.0, 30).profit, profit_without_orders(stages, 20.0, 30)
    scores = []
    for seed in range(20):
        total, score, success = played(env, seed)
        assert success == 1 and score == pytest.approx((100 * total - lowest) / (best - lowest))
        scores.append(score)
        total, score, success = played(env, seed, nothing)
        assert score == pytest.approx(max(0.0, (100 * total - lowest) / (best - lowest))) and score < 0.1 > success
    assert sum(scores) / 20 == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("answer", ["[14, 17, 0]", "14 17 0", "(14,17,0).", " 14  17\n0 "])
def test_notations_of_orders(answer: str) -> None:
    env = Inventory(stages=3)
    env.reset(seed=0)
    assert env.step(answer)[0].startswith("Shipped 14, 17, 0. Customers wanted ")


@pytest.mark.parametrize(
    "answer", ["", "14 17", "1 2 3 4", "-1 0 0", "101 0 0", "1.5 0 0", "² 0 0", "9" * 5000, "a b c"]
)
def test_other_answers_change_nothing(answer: str) -> None:
    env = Inventory(stages=3)
    observation, info = env.reset(seed=0)
    shown, reward, _, _, after = env.step(answer)
    assert shown == f"Answer with 3 whole numbers from 0 to 100.\n{observation}" or len(answer) > 100
    assert reward == 0 and after["anchor"] == info["anchor"] and not after["action_is_valid"]


def test_one_store_lists_its_orders_and_a_supplier_ships_what_it_has() -> None:
    env = Inventory()
    assert env.reset(seed=0)[1]["legal_actions"][::50] == ("0", "50", "100")
    chain = Inventory(stages=2)
    chain.reset(seed=0)
    assert chain.step("100 0")[0].startswith("Shipped 100, 0.") and chain.step("100 0")[0].startswith("Shipped 0, 0.")


def test_snapshots_continue_and_hidden_demand_can_change() -> None:
    env, other = Inventory(stages=3), Inventory(stages=3)
    env.reset(seed=4)
    for _ in range(5):
        env.step("20 20 20")
    other.restore(env.snapshot())
    assert [env.step("30 9 9")[:2] for _ in range(9)] == [other.step("30 9 9")[:2] for _ in range(9)]
    before = other.anchor()
    assert other.resample_hidden() and other.anchor() == before
    assert [env.step("30 9 9")[:2] for _ in range(9)] != [other.step("30 9 9")[:2] for _ in range(9)]


def test_options_that_leave_nothing_to_order_are_refused() -> None:
    with pytest.raises(OptionError, match=r"periods of .* must be at least 40 with mean=5"):
        Inventory(mean=5, periods=20)
    with pytest.raises(ConfigError, match="max_turns"):
        Inventory(periods=60)
