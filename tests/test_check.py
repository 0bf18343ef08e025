"""The check accepts what keeps the promises and names what breaks each of them."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from toy_envs import Counter, Picture

import turngym
from turngym.envs.check import CheckFailed, Report, check
from turngym.envs.check_case import canonical
from turngym.envs.check_leaks import holdings
from turngym.envs.check_rules import RULES
from turngym.envs.core import Outcome
from turngym.errors import ConfigError, SnapshotUnsupported, TurngymError, UnknownName


class Hider(Counter):
    """A counter beside a hidden number."""

    def _begin(self, task: str | int | None) -> str:
        self.hidden = 5
        return super()._begin(task)

    def _state(self) -> Any:
        return [self.count, self.hidden]

    def _load(self, state: Any) -> None:
        self.count, self.hidden = state

    def resample_hidden(self) -> bool:
        self.hidden += 1
        return True


class UsesGlobalRandom(Counter):
    def _noise(self) -> int:
        return random.randrange(10**6)


class MovesNumpy(Counter):
    def _noise(self) -> int:
        np.random.seed(0)
        return 0


class ReadsTheClock(Counter):
    def _noise(self) -> int:
        return int.from_bytes(os.urandom(4), "big")


class SharesState(Counter):
    turns: list[int] = []  # noqa: RUF012

    def _begin(self, task: str | int | None) -> str:
        self.turns.clear()
        return super()._begin(task)

    def _noise(self) -> int:
        self.turns.append(0)
        return len(self.turns)


class RemembersTheLastEpisode(Counter):
    episodes = 0

    def _begin(self, task: str | int | None) -> str:
        self.episodes += 1
        return super()._begin(task) + " again" * (self.episodes > 1)


class SpeaksNumbers(Counter):
    def _begin(self, task: str | int | None) -> Any:
        super()._begin(task)
        return self.count


class ForgetsInASnapshot(Counter):
    def _load(self, state: Any) -> None:
        self.count = 0


class SeedsTheSnapshot(Counter):
    def restore(self, snapshot: bytes) -> Any:
        result = super().restore(snapshot)
        self.np_random.random()
        return result


class MissesAKey(Counter):
    def _info(self) -> dict[str, Any]:
        return {key: value for key, value in super()._info().items() if key != "score"}


class WrongType(Counter):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "legal_actions": ["up"]}


class EarlySuccess(Counter):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "success": 0}


class TooMuchProgress(Counter):
    def _progress(self) -> float:
        return 1.5


class LiesAboutLegality(Counter):
    def _legal_actions(self) -> tuple[str, ...]:
        return ("jump",)


class BothFlags(Counter):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, terminated or truncated, info


class NeverEnds(Counter):
    def step(self, action: str) -> Any:
        self.turn = 0
        self.count = 0
        return super().step(action)


class StepsOn(Counter):
    def step(self, action: str) -> Any:
        self._running = self._running or self.turn > 0
        return super().step(action)


class ClosesOnce(Counter):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("already closed")
        self.closed = True


class Picky(Counter):
    def _advance(self, action: str) -> Outcome[str]:
        action.encode("utf-16")  # a lone surrogate cannot be encoded
        return super()._advance(action)


class LeakyAnchor(Hider):
    def _anchor(self) -> str:
        return f"{self.count}, hidden {self.hidden}"


class LeakyProgress(Hider):
    def _progress(self) -> float:
        return self.hidden % 10 / 10


class LeakyActions(Hider):
    def _legal_actions(self) -> tuple[str, ...]:
        return ("up", "down") if self.hidden == 5 else ("down", "up")


class HopelessExpert(Counter):
    def expert_action(self) -> str:
        return "down"


class WrongExpert(Counter):
    def expert_action(self) -> str:
        return "jump" if self.turn % 2 else "up"


class RestlessExpert(Counter):
    def expert_action(self) -> str:
        self._noise()
        return "up"


class OneTask(Counter):
    def tasks(self) -> tuple[str, ...]:
        return ("1", "2")


class SharedSplits(Counter):
    def _begin(self, task: str | int | None) -> str:
        text = super()._begin(task)
        self.instance = "the only one"
        return text

    def __init__(self, *, max_turns: int = 8, split: str = "train") -> None:
        super().__init__(max_turns=max_turns, split=split)
        self.finite_instances = None


class LeavesFiles(Counter):
    kept: list[Any] = []  # noqa: RUF012

    def _begin(self, task: str | int | None) -> str:
        self.kept.append(os.open(os.devnull, os.O_RDONLY))
        return super()._begin(task)


class LeavesChildren(Counter):
    kept: list[Any] = []  # noqa: RUF012

    def _begin(self, task: str | int | None) -> str:
        self.kept.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        return super()._begin(task)


class LeavesThreads(Counter):
    kept: list[Any] = []  # noqa: RUF012
    gate = threading.Event()

    def _begin(self, task: str | int | None) -> str:
        self.kept.append(threading.Thread(target=self.gate.wait))
        self.kept[-1].start()
        return super()._begin(task)


BROKEN: list[tuple[Callable[..., Any], str, str]] = [
    (UsesGlobalRandom, "the global generators stay untouched", "`random` has moved"),
    (MovesNumpy, "the global generators stay untouched", "NumPy's global generator"),
    (ReadsTheClock, "episodes repeat", "two copies with seed 0 differ at turn 0"),
    (SharesState, "copies are isolated", "another copy playing in between"),
    (RemembersTheLastEpisode, "nothing survives a reset", "after a whole other episode"),
    (SpeaksNumbers, "Gymnasium accepts it", "not within the observation space"),
    (ForgetsInASnapshot, "snapshots are exact", "returns"),
    (SeedsTheSnapshot, "snapshots are exact", "a branch in a fresh environment"),
    (MissesAKey, "the info table is kept", "info must have the keys"),
    (WrongType, "the info table is kept", "info['legal_actions'] must be tuple, got list"),
    (EarlySuccess, "the info table is kept", "success must be -1"),
    (TooMuchProgress, "the info table is kept", "progress must lie in [0, 1]"),
    (LiesAboutLegality, "the info table is kept", "the legal action 'jump'"),
    (BothFlags, "the info table is kept", "never both True"),
    (NeverEnds, "the info table is kept", "goes on after max_turns=8"),
    (StepsOn, "the call order is kept", "after the end of the episode must raise"),
    (ClosesOnce, "the call order is kept", "already closed"),
    (Picky, "any text is answered", "raised UnicodeEncodeError"),
    (LeakyAnchor, "hidden facts stay hidden", "anchor tells a hidden fact"),
    (LeakyProgress, "hidden facts stay hidden", "progress tells a hidden fact"),
    (LeakyActions, "hidden facts stay hidden", "legal_actions tells a hidden fact"),
    (HopelessExpert, "the expert solves it", "solved none"),
    (WrongExpert, "the expert solves it", "expert's action 'jump' is not valid"),
    (RestlessExpert, "the expert solves it", "moves the generator"),
    (OneTask, "tasks can be chosen", "task '1' is another instance"),
    (SharedSplits, "splits share nothing", "belongs to train and to dev"),
    (LeavesFiles, "nothing leaks", "open files"),
    (LeavesChildren, "nothing leaks", "child processes"),
    (LeavesThreads, "nothing leaks", "threads"),
]


def findings(maker: Callable[..., Any], rule: str) -> list[str]:
    """Return what one rule says."""
    from turngym.envs.check_case import Case

    case = Case(maker, 0, 2)
    try:
        return list(RULES[rule](case))
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"]
    finally:
        try:
            case.close()
        except RuntimeError:
            assert maker is ClosesOnce


@pytest.mark.parametrize(("maker", "rule", "text"), BROKEN, ids=[f"{kind.__name__}" for kind, _, _ in BROKEN])
def test_a_broken_promise_is_found(
    maker: Callable[..., Any], rule: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.envs.check_leaks._PATIENCE_SECONDS", 0.1)
    state = random.getstate(), np.random.get_state()
    try:
        found = findings(maker, rule)
    finally:
        random.setstate(state[0])
        np.random.set_state(state[1])
        tidy()
    assert any(text in finding for finding in found), found


def tidy() -> None:
    """Undo what the leaking environments have left."""
    while LeavesFiles.kept:
        os.close(LeavesFiles.kept.pop())
    while LeavesChildren.kept:
        LeavesChildren.kept.pop().communicate()
    LeavesThreads.gate.set()
    while LeavesThreads.kept:
        LeavesThreads.kept.pop().join()
    LeavesThreads.gate.clear()


def test_every_rule_has_an_environment_that_breaks_it() -> None:
    assert {rule for _, rule, _ in BROKEN} == set(RULES)


@pytest.mark.parametrize("maker", [Counter, Hider, lambda **options: gymnasium.make("toy/Counter-v0", **options)])
def test_an_environment_that_keeps_its_promises_passes(maker: Callable[..., Any]) -> None:
    report = check(maker)
    assert not report.findings and len(report.passed) + len(report.skipped) == len(RULES)
    assert ("hidden facts stay hidden" in report.passed) == (maker is Hider)


def test_an_environment_is_checked_by_copies() -> None:
    env = Counter(4, max_turns=9)
    env.reset(seed=0)
    before = env.snapshot()
    assert "Counter" in check(env, episodes=1).name
    assert env.snapshot() == before
    made = gymnasium.make("toy/Counter-v0", goal=2)
    assert check(gymnasium.wrappers.OrderEnforcing(made), episodes=1).name == "toy/Counter-v0"


def test_an_unknown_progress_is_no_difference() -> None:
    class Unknown(Counter):
        def _progress(self) -> float:
            return float("nan")

    assert "Gymnasium accepts it" in check(Unknown, episodes=1).passed


def test_a_snapshot_that_cannot_be_is_skipped_with_its_reason() -> None:
    class NoSnapshot(Counter):
        def snapshot(self) -> bytes:
            raise SnapshotUnsupported("replay was shown unequal")

    assert ("snapshots are exact", "replay was shown unequal") in check(NoSnapshot, episodes=1).skipped


def test_all_findings_come_in_one_error() -> None:
    class Bad(WrongExpert):
        def _progress(self) -> float:
            return float(self.turn + 2)

    with pytest.raises(CheckFailed) as caught:
        check(Bad)
    assert isinstance(caught.value, TurngymError) and isinstance(caught.value, AssertionError)
    text = str(caught.value)
    assert "the expert solves it: the expert's action 'jump'" in text and "progress must lie in" in text
    assert "more of this kind" in text
    assert "ok    episodes repeat" in str(caught.value.report) and "FAIL  the expert" in str(caught.value.report)


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"TextEnv and its wrappers, got Picture"):
        check(Picture)
    with pytest.raises(ConfigError, match="pass its id or a function"):
        check(Picture())
    with pytest.raises(UnknownName, match="Counter-v0"):
        check("toy/Conter-v0")
    with pytest.raises(ConfigError, match="episodes must be at least 1, got 0"):
        check(Counter, episodes=0)


def test_the_report_reads_well() -> None:
    report = Report("toy", ("a holds",), (("b", "no list"),), ("c: broken",))
    assert str(report) == "toy\nok    a holds\nskip  b: no list\nFAIL  c: broken"
    assert turngym.check is check


def test_canonical_text_tells_values_apart() -> None:
    values = [1, 1.0, True, "1", (1,), [1], np.array([1]), np.array([1.0]), {"a": 1}, float("nan"), None]
    assert len({canonical(value) for value in values}) == len(values)
    large = np.zeros(5000)
    other = large.copy()
    other[2500] = 1
    assert canonical(large) != canonical(other)  # NumPy's own repr would hide the difference


def test_holdings_count_what_is_open() -> None:
    before = holdings()
    with open(os.devnull):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        now = holdings()
        child.communicate()
    if "open files" in before:
        assert now["open files"] == before["open files"] + 2
        assert now["child processes"] == before["child processes"] + 1
    assert holdings() == before
