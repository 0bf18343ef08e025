"""All 130 pages of MiniWoB: each loads, repeats itself, and takes whatever a random policy does."""

import random
from collections.abc import Iterator

import pytest
from miniwob_pages import pool

from turngym.envs.web.miniwob.env import MiniWoB
from turngym.envs.web.miniwob.oracles import ORACLES
from turngym.envs.web.miniwob.tasks import RELOADED, REWOUND, TASKS

pytestmark = pytest.mark.integration
__all__ = ["pool"]  # fixtures
TURNS = 8
EXTRA = ("press Tab", "press Enter", "scroll down", "wait", "hover 60,100", "drag 60,90 to 90,130", "back")


@pytest.fixture(scope="module")
def env() -> Iterator[MiniWoB]:
    made = MiniWoB("all", max_turns=TURNS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def reloaded() -> Iterator[MiniWoB]:
    """An environment that loads its page anew at every reset."""
    made = MiniWoB("all", max_turns=TURNS)
    made._page.rewound = frozenset()
    yield made
    made.close()


def play(env: MiniWoB, task: str, seed: int) -> list[object]:
    """Return all that an episode of random actions shows."""
    env.names = (task,)
    choice = random.Random(f"{task} {seed}")
    observation, info = env.reset(seed=seed)
    seen: list[object] = [(observation, info["anchor"])]
    while env._running:
        action = choice.choice([*info["legal_actions"], *EXTRA])
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((action, observation, reward, terminated, truncated, info["anchor"]))
    return seen


@pytest.mark.parametrize("task", TASKS)
def test_a_page_that_was_played_with_begins_again_as_if_freshly_loaded(
    env: MiniWoB, reloaded: MiniWoB, task: str
) -> None:
    assert (task in REWOUND) != (task in RELOADED)
    play(env, task, 2)  # leaves behind whatever it leaves
    assert play(env, task, 1) == play(reloaded, task, 1)


@pytest.mark.parametrize("task", sorted(ORACLES))
def test_the_oracle_solves_its_task(env: MiniWoB, task: str) -> None:
    env.names, env.max_turns = (task,), 30
    try:
        for seed in (100, 101, 102):
            env.reset(seed=seed)
            while env._running:
                info = env.step(env.expert_action())[-1]
            assert info["success"] == 1, f"seed {seed}: score {info['score']}"
    finally:
        env.max_turns = TURNS
