"""Environments with one planted fault each: in what they return, in the order of calls, in the expert."""

from typing import Any

import numpy as np
from sound_env import Sound

from turngym.envs.core import Outcome
from turngym.types import JSONValue


class CannotBegin(Sound):
    def begin(self, task: str | int | None) -> str:
        raise KeyError("no such cave")


class CannotBeMade(Sound):
    def __init__(self, **options: Any) -> None:
        raise OSError("the cave is closed")


class BreaksOff(Sound):
    def apply_action(self, action: str) -> Outcome[str]:
        if self.turn == 2:
            raise IndexError("no more caves")
        return super().apply_action(action)


class Silent(Sound):
    instructions = " \n"


class MissesAKey(Sound):
    def _info(self) -> dict[str, Any]:
        return {key: value for key, value in super()._info().items() if key != "score"}


class AddsAKey(Sound):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "place": self.low}


class WrongType(Sound):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "legal_actions": ["open 1"]}


class NumberOfNumPy(Sound):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "score": np.float64(1)}


class NumbersAsActions(Sound):
    def legal_actions(self) -> Any:
        return (1, 2)


class EarlySuccess(Sound):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "success": 0}


class TooMuchProgress(Sound):
    def progress(self) -> float:
        return 1.5


class InfiniteScore(Sound):
    def score(self) -> float:
        return float("inf")


class TellsOfFaults(Sound):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "fault": "nothing serious"}


class SpeaksNumbers(Sound):
    def begin(self, task: str | int | None) -> Any:
        super().begin(task)
        return 64


class NoReward(Sound):
    def apply_action(self, action: str) -> Outcome[str]:
        return super().apply_action(action)._replace(reward=float("nan"))


class BothFlags(Sound):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, terminated or truncated, info


class FlagsOfNumPy(Sound):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, np.bool_(terminated), truncated, info


class NeverEnds(Sound):
    def step(self, action: str) -> Any:
        self.turn = min(self.turn, self.max_turns - 2)
        return super().step(action)

    def expert_action(self) -> str:
        return f"open {(self.low + self.high) // 2}"


class LiesAboutLegality(Sound):
    def legal_actions(self) -> tuple[str, ...]:
        return ("jump",)


class LegalAfterTheEnd(Sound):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "legal_actions": self.legal_actions()}


class StepsOn(Sound):
    def step(self, action: str) -> Any:
        self._running = self._running or self.turn > 0
        return super().step(action)


class StepsBefore(Sound):
    def step(self, action: str) -> Any:
        if self._observation is None:
            self.reset()
        return super().step(action)


class ClosesOnce(Sound):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("already closed")
        self.closed = True


class ClosesOnlyWhenUsed(Sound):
    def close(self) -> None:
        self.place = self.place


class Picky(Sound):
    def apply_action(self, action: str) -> Outcome[str]:
        action.encode("utf-16")  # a lone surrogate cannot be encoded
        return super().apply_action(action)


class TrustsDigits(Sound):
    def apply_action(self, action: str) -> Outcome[str]:
        return super().apply_action(f"open {int(action)}" if action[-1:].isnumeric() and " " not in action else action)


class RestlessExpert(Sound):
    def expert_action(self) -> str:
        self._noise()
        return super().expert_action()


class HesitantExpert(Sound):
    asked = 0

    def expert_action(self) -> str:
        self.asked += 1
        return f"open {self.asked % 64}"


class WrongExpert(Sound):
    def expert_action(self) -> str:
        return "jump" if self.turn == 1 else super().expert_action()


class HopelessExpert(Sound):
    def expert_action(self) -> str:
        return "open 0" if self.place else "open 1"


class SharesItsInfo(Sound):
    def _info(self) -> dict[str, Any]:
        if "table" not in vars(self):
            self.table: dict[str, Any] = {}
        self.table.update(super()._info())
        return self.table


class BelievesItsInfo(Sound):
    """Reads its own last info in the next turn."""

    def _info(self) -> dict[str, Any]:
        self.last = super()._info()
        return self.last

    def apply_action(self, action: str) -> Outcome[str]:
        seen = self.last.get("anchor", "nothing")
        outcome = super().apply_action(action)
        return outcome._replace(observation=f"{outcome.observation}, before: {seen}")

    def save_state(self) -> JSONValue:
        return [super().save_state(), self.last]

    def load_state(self, state: JSONValue) -> None:
        super().load_state(state[0])
        self.last = state[1]


FAULTS: list[tuple[Any, str, str]] = [
    (CannotBegin, "plays", "KeyError: 'no such cave' in begin, line"),
    (CannotBeMade, "plays", "making it raised OSError: the cave is closed"),
    (BreaksOff, "plays", "IndexError: no more caves in apply_action"),
    (Silent, "instructions-given", "a string that is not empty"),
    (MissesAKey, "info-complete", "info lacks score"),
    (AddsAKey, "info-complete", "got also place"),
    (WrongType, "info-complete", "info['legal_actions'] must be tuple, got list"),
    (NumberOfNumPy, "info-complete", "info['score'] must be float, got float64"),
    (NumbersAsActions, "info-complete", "every legal action must be a str"),
    (EarlySuccess, "info-values", "success must be -1 while the episode runs, got 0"),
    (TooMuchProgress, "info-values", "progress must be in [0, 1] or be nan, got 1.5"),
    (InfiniteScore, "info-values", "score must be a finite number, got inf"),
    (TellsOfFaults, "info-values", "fault must be empty"),
    (SpeaksNumbers, "observation-in-space", "the observation 64 is not in Unicode()"),
    (NoReward, "reward-finite", "got nan"),
    (BothFlags, "flags-exclusive", "terminated and truncated are both True"),
    (FlagsOfNumPy, "flags-exclusive", "the flags must be bool, got"),
    (NeverEnds, "turn-limit", "continues after max_turns=9 turns"),
    (LiesAboutLegality, "legal-actions-valid", "the legal action 'jump' was answered as not valid"),
    (LegalAfterTheEnd, "legal-actions-valid", "legal after the end"),
    (StepsOn, "no-step-without-episode", "step() after the end of the episode is accepted"),
    (StepsBefore, "no-step-without-episode", "step() before the first reset() is accepted"),
    (ClosesOnce, "close-twice", "the second close() before any reset raised RuntimeError: already closed in close"),
    (ClosesOnlyWhenUsed, "close-twice", "the first close() before any reset raised AttributeError"),
    (Picky, "any-text-answered", r"the action '\ud800' raised UnicodeEncodeError"),
    (TrustsDigits, "any-text-answered", "raised ValueError"),
    (RestlessExpert, "expert-pure", "asking the expert changes the environment"),
    (HesitantExpert, "expert-pure", "asked twice, the expert says two things"),
    (WrongExpert, "expert-valid", "the expert's action 'jump' is not valid"),
    (HopelessExpert, "expert-solves", "the expert solved none of 10 episodes"),
    (SharesItsInfo, "results-not-shared", "was changed by a later turn"),
    (BelievesItsInfo, "results-not-shared", "after the caller changed"),
]
"""The class, the one rule that it breaks, and what is said of it."""
