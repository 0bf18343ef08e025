"""A seat in vectors of every backend: equal episodes, groups by seed, snapshots across slots and backends, faults."""

from typing import Any

import numpy as np
import pytest

from turngym import make_vec
from turngym.envs.multiagent import Player, SeatView
from turngym.envs.vector import TextVectorEnv

BACKENDS: tuple[dict[str, Any], ...] = (
    {},
    {"backend": "thread", "num_workers": 2},
    {"backend": "process", "num_workers": 2},
)
WEREWOLF = "turngym/WerewolfSeat-v0"


def answers(vector: TextVectorEnv, infos: Any, turn: int) -> list[str]:
    return [row["legal_actions"][turn % len(row["legal_actions"])] if row["legal_actions"] else "Hm." for row in infos]


def shown(observations: Any, infos: Any) -> list[Any]:
    return [list(observations), [dict(row) for row in infos.rows]]


def transcript(seats: int, settings: dict[str, Any]) -> list[Any]:
    """Play a group of two and another one, and return all that was shown, and what a snapshot brought back."""
    vector = make_vec(WEREWOLF, seats, **settings)
    observations, infos = vector.reset(seed=[3, 3, 8])
    found, saved, later = [shown(observations, infos)], [], []
    for turn in range(6):
        if turn == 2:
            saved = vector.snapshot()
        observations, rewards, terminated, truncated, infos = vector.step(answers(vector, infos.rows, turn))
        found.append([*shown(observations, infos), list(rewards), list(terminated), list(truncated)])
        if turn >= 2:
            later.append([observations[2], float(rewards[2])])
    observations, infos = vector.restore([saved[2]], [0])
    for turn, expected in zip(range(2, 6), later, strict=True):
        row = infos.rows[0]
        observations, rewards, _, _, infos = vector.step([*answers(vector, [row], turn), "", ""])
        assert [observations[0], float(rewards[0])] == expected
    vector.close()
    return found


def test_a_seat_plays_the_same_in_every_backend_and_goes_on_from_a_snapshot_of_another_slot() -> None:
    first, *others = [transcript(3, settings) for settings in BACKENDS]
    assert all(str(other) == str(first) for other in others)
    for step in first:
        assert step[0][0] == step[0][1] and step[1][0] == step[1][1], "equal seeds and actions are equal episodes"


def test_a_snapshot_goes_from_one_backend_to_another() -> None:
    here, there = (make_vec(WEREWOLF, 2, **settings) for settings in (BACKENDS[0], BACKENDS[2]))
    _, infos = here.reset(seed=[1, 2])
    there.reset(seed=[7, 8])
    observations, *_, infos = here.step(answers(here, infos.rows, 0))
    moved, more = there.restore(list(reversed(here.snapshot())))
    assert list(moved) == [observations[1], observations[0]]
    assert [row["anchor"] for row in more.rows] == [row["anchor"] for row in reversed(infos.rows)]
    here.close()
    there.close()


class Broken(Player):
    """Raises in its second turn."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        self.turns = 0

    def act(self, view: SeatView) -> str:
        self.turns += 1
        if self.turns > 1:
            raise OSError("out of order")
        return view.legal_actions[0]


@pytest.mark.parametrize("settings", BACKENDS[:2])
def test_an_opponent_that_raises_ends_the_episode_as_a_fault(settings: dict[str, Any]) -> None:
    vector = make_vec("turngym/PrisonersDilemmaSeat-v0", 2, opponents=f"{__name__}:Broken", **settings)
    vector.reset(seed=[1, 2])
    _, _, terminated, truncated, infos = vector.step(["defect", "nonsense"])
    assert list(truncated) == [True, False] and not any(terminated)
    assert "'Broken'" in infos.rows[0]["fault"] and "out of order" in infos.rows[0]["fault"]
    assert infos.rows[1]["fault"] == ""
    vector.close()
