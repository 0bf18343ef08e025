"""Hidden facts in long episodes: swapped at some turns only, spread from the first to the last."""

from typing import Any, ClassVar

import numpy as np
import pytest
from sound_env import Sound

from turngym.envs.checks import hidden
from turngym.envs.checks.case import Case
from turngym.envs.checks.rule import Skipped
from turngym.envs.core import Outcome, TextEnv


class Patient(Sound):
    """Goes on after the coin was found, and hides where the next one lies."""

    places: ClassVar[list[int]] = []

    def __init__(self, **options: Any) -> None:
        super().__init__(max_turns=250, **options)

    def apply_action(self, action: str) -> Outcome[str]:
        found = super().apply_action(action)
        if found.terminated:
            self.low, self.high = 0, 63
        return Outcome(found.observation, action_is_valid=found.action_is_valid)

    def resample_hidden(self) -> bool:
        self.places.append(self.turn)
        return super().resample_hidden()


class TellsLate(Patient):
    """Tells in its last turns."""

    def anchor(self) -> str:
        return super().anchor() + (f", {self.place}" if self.turn > 240 else "")


class Open(Patient):
    """Hides nothing, and counts its snapshots."""

    resample_hidden = TextEnv.resample_hidden
    saved = 0

    def snapshot(self) -> bytes:
        type(self).saved += 1
        return super().snapshot()


def test_a_long_episode_is_swapped_at_a_hundred_turns_from_the_first_to_the_last() -> None:
    Patient.places.clear()
    case = Case(Patient, episodes=1)
    found = hidden.swaps(case)
    assert len(Patient.places) == hidden.MOST_SWAPS == len(set(Patient.places))
    assert Patient.places[0] == 0 and Patient.places[-1] > 245 and len(case.first.actions) == 250
    assert int(np.diff(Patient.places).max()) <= 3
    assert found.count and not any(found.found.values())
    case.close(kept=True)


def test_a_short_episode_is_swapped_at_every_turn() -> None:
    class Short(Patient):
        def __init__(self, **options: Any) -> None:
            Sound.__init__(self, max_turns=20, **options)

    Short.places.clear()
    case = Case(Short, episodes=1)
    hidden.swaps(case)
    assert Short.places == list(range(20))
    case.close(kept=True)


def test_what_is_told_late_in_a_long_episode_is_found() -> None:
    case = Case(TellsLate, episodes=1)
    (finding,) = hidden.hidden_in_anchor.test(case)
    assert finding.turn is not None and finding.turn > 240
    case.close(kept=True)


def test_where_nothing_is_declared_nothing_is_saved_and_restored() -> None:
    """That nobody says what is hidden does not mean that nothing is."""
    case = Case(Open, episodes=1)
    with pytest.raises(Skipped, match="not declared: without resample_hidden"):
        hidden.swaps(case)
    assert Open.saved == 0
    case.close(kept=True)


class Nothing(Open):
    """Declares that nothing is hidden."""

    def resample_hidden(self) -> bool:
        return False


def test_an_environment_can_declare_that_nothing_is_hidden() -> None:
    case = Case(Nothing, episodes=1)
    with pytest.raises(Skipped, match="nothing is hidden"):
        hidden.swaps(case)
    case.close(kept=True)


class ForgetsToReturn(TellsLate):
    """Swaps hidden facts and returns None."""

    def resample_hidden(self) -> bool:
        super().resample_hidden()
        return None  # type: ignore[return-value]  # the mistake


def test_a_swap_that_returns_nothing_counts_as_one() -> None:
    case = Case(ForgetsToReturn, episodes=1)
    assert hidden.hidden_in_anchor.test(case)
    case.close(kept=True)
