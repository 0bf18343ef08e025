"""pass@k and pass^k against the slow way: all subsets of the attempts, and simulated attempts."""

from itertools import combinations

import pytest

from turngym.agents.episodes.pass_k import pass_at_k, pass_hat_k, repeated_attempts, told_ks
from turngym.agents.intervals import cluster_bootstrap
from turngym.seeding import stream


@pytest.mark.parametrize("attempts", range(1, 8))
def test_both_are_shares_of_the_subsets_of_k_attempts(attempts: int) -> None:
    for successes in range(attempts + 1):
        outcomes = [True] * successes + [False] * (attempts - successes)
        for k in range(1, attempts + 1):
            subsets = list(combinations(outcomes, k))
            assert pass_at_k(attempts, successes, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
            assert pass_hat_k(attempts, successes, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


@pytest.mark.parametrize(("chance", "k"), [(0.3, 2), (0.6, 3)])
def test_neither_is_biased_where_the_obvious_estimates_are(chance: float, k: int) -> None:
    # Four attempts with a known chance p: pass@k is 1 - (1 - p)^k and pass^k is p^k. Putting the share of successes
    # in the place of p misses both.
    attempts = 4
    counts = stream("pass k", k).binomial(attempts, chance, size=40_000)
    truth_any, truth_all = 1 - (1 - chance) ** k, chance**k
    assert sum(pass_at_k(attempts, int(c), k) for c in counts) / len(counts) == pytest.approx(truth_any, abs=0.01)
    assert sum(pass_hat_k(attempts, int(c), k) for c in counts) / len(counts) == pytest.approx(truth_all, abs=0.01)
    plugged_any = sum(1 - (1 - c / attempts) ** k for c in counts) / len(counts)
    plugged_all = sum((c / attempts) ** k for c in counts) / len(counts)
    assert abs(plugged_any - truth_any) > 0.03 and abs(plugged_all - truth_all) > 0.03


@pytest.mark.parametrize(("attempts", "successes", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1), (0, 0, 1)])
def test_numbers_that_contradict_one_another_are_refused(attempts: int, successes: int, k: int) -> None:
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=f"got k={k}, {attempts} attempts and {successes} successes"):
            function(attempts, successes, k)


def test_every_k_is_told_for_few_repeats_and_powers_of_two_for_many() -> None:
    assert [told_ks(n) for n in (1, 2, 8)] == [(1,), (1, 2), tuple(range(1, 9))]
    assert told_ks(9) == (1, 2, 4, 8, 9) and told_ks(64) == (1, 2, 4, 8, 16, 32, 64)


def records(outcomes: list[list[int]]) -> list[dict[str, object]]:
    return [
        {"task": task, "attempt": attempt, "success": success, "block_id": f"instance {task % 3}"}
        for task, row in enumerate(outcomes)
        for attempt, success in enumerate(row)
    ]


def test_attempts_at_a_task_are_compared_with_one_another_and_tasks_are_averaged() -> None:
    outcomes = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]
    found = repeated_attempts(records(outcomes))
    assert list(found) == ["pass@1", "pass^1", "pass@2", "pass^2", "pass@3", "pass^3"]
    assert found["pass@1"].value == found["pass^1"].value == pytest.approx(6 / 12), "the share of successes"
    assert found["pass@3"].value == 3 / 4 and found["pass^3"].value == 1 / 4
    assert found["pass@2"].value == pytest.approx((1 + 0 + 1 + 2 / 3) / 4)
    blocks = [f"instance {task % 3}" for task in range(4)]
    assert found["pass@3"] == cluster_bootstrap([1.0, 0.0, 1.0, 1.0], blocks), "tasks of one instance stay together"


def test_a_task_with_too_few_attempts_is_left_out_of_that_k_alone() -> None:
    found = repeated_attempts(records([[1, 0], [1]]))
    assert found["pass@1"].count == 2 and found["pass@1"].value == 0.75
    assert found["pass@2"].count == 1 and found["pass@2"].value == 1.0


def test_nothing_is_told_where_nothing_was_repeated() -> None:
    assert repeated_attempts(records([[1], [0]])) == {} == repeated_attempts([])
    assert repeated_attempts([{"success": 1, "block_id": "a"}]) == {}, "records from elsewhere"
