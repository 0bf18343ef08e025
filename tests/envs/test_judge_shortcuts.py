"""Policies that do not do the task earn little."""

from typing import Any

import gymnasium
import pytest
from shortcuts import (
    Played,
    Policy,
    at_random,
    carry_everything,
    expert,
    first_legal,
    press_everything,
    try_each_customer,
    try_each_person,
)


def successes(env_id: str, policy: Policy, count: int, **options: Any) -> int:
    env = gymnasium.make(env_id, **options)
    try:
        return sum(Played(env).play(policy, seed)[1] for seed in range(count))
    finally:
        env.close()


@pytest.mark.parametrize(
    ("site", "kind", "policy"),
    [("issues", "least_busy", try_each_person), ("shop", "best_customer", try_each_customer)],
)
def test_who_is_meant_cannot_be_found_by_trying_one_after_another(site: str, kind: str, policy: Policy) -> None:
    """A wrong choice that can be undone leaves no trace: such a goal asks for something that cannot be undone too."""
    count = 30
    assert successes("turngym/WebSite-v0", expert, count, site=site, kind=kind) == count
    assert successes("turngym/WebSite-v0", policy, count, site=site, kind=kind) <= count // 3


@pytest.mark.parametrize(
    ("env_id", "policy", "most"),
    [
        ("turngym/WebSite-v0", at_random, 0),
        ("turngym/WebSite-v0", first_legal, 0),
        ("turngym/WebSite-v0", press_everything, 0),
        ("turngym/Household-v0", first_legal, 0),
        ("turngym/Household-v0", carry_everything, 10),
        ("turngym/WebShop-v0", at_random, 1),
    ],
)
def test_policies_that_ignore_the_task_succeed_seldom(env_id: str, policy: Policy, most: int) -> None:
    assert successes(env_id, policy, 30, split="test") <= most
