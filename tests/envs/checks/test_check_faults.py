"""Every planted fault is reported as exactly the rule that it breaks, and what breaks none is left alone."""

import contextlib
import random
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import faulty_envs
import faulty_states
import faulty_worlds
import numpy as np
import pytest
import sound_env

from turngym.envs.check import CheckFailed, Report, check
from turngym.envs.checks.table import RULES

IN_PROCESS = [*faulty_envs.FAULTS, *faulty_states.FAULTS, *faulty_worlds.HERE]
ALL = [*IN_PROCESS, *faulty_worlds.ELSEWHERE]


def found(maker: Any, **options: Any) -> Report:
    """Return the report, good or bad."""
    try:
        return check(maker, **options)
    except CheckFailed as error:
        return error.report


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait less for what will not end, and undo what the faulty environments leave."""
    monkeypatch.setattr("turngym.envs.checks.leaks.PATIENCE_SECONDS", 0.1)
    state = random.getstate(), np.random.get_state()
    with tempfile.TemporaryDirectory(prefix="caves-") as folder:  # sockets lie there too, so its path must be short
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield
        monkeypatch.undo()
    random.setstate(state[0])
    np.random.set_state(state[1])
    faulty_worlds.tidy()


def names(faults: list[tuple[Any, str, str]]) -> list[str]:
    return [kind.__name__ for kind, _, _ in faults]


@pytest.mark.parametrize(("maker", "rule", "text"), IN_PROCESS, ids=names(IN_PROCESS))
def test_a_planted_fault_is_reported_as_its_rule_and_no_other(maker: Any, rule: str, text: str) -> None:
    report = found(maker, episodes=2, in_process=True)
    assert report.failed == (rule,), report
    assert any(text in finding for finding in report.findings), report.findings


@pytest.mark.parametrize(("maker", "rule", "text"), faulty_worlds.ELSEWHERE, ids=names(faulty_worlds.ELSEWHERE))
def test_a_fault_that_only_other_processes_show_is_reported_too(maker: Any, rule: str, text: str) -> None:
    report = found(maker, episodes=1)
    assert report.failed == (rule,), report
    assert any(text in finding for finding in report.findings), report.findings


def test_every_rule_has_an_environment_that_breaks_it() -> None:
    assert {rule for _, rule, _ in ALL} == set(RULES)


@pytest.mark.parametrize("maker", [sound_env.Sound, faulty_states.Painted])
def test_the_sound_twin_of_all_of_them_passes_every_rule_that_applies(maker: Callable[..., Any]) -> None:
    report = check(maker, episodes=1)
    assert not report.failed
    assert report.skipped == (("tasks-bind", "there is no list of tasks"),)


@pytest.mark.parametrize("maker", sound_env.HARMLESS)
def test_what_looks_odd_and_harms_nobody_passes(maker: Callable[..., Any]) -> None:
    needs_processes = maker in (sound_env.SortsItsSet, sound_env.TimesItself, sound_env.ReadsAVariableInVain)
    try:
        assert not check(maker, episodes=2 - needs_processes, in_process=not needs_processes).failed
    finally:
        server, sound_env.KeepsOneServer.server = sound_env.KeepsOneServer.server, None
        if server is not None:
            server.communicate()


def test_a_rule_that_a_broken_one_hides_is_skipped_and_says_so() -> None:
    report = found(faulty_worlds.UsesRandom, in_process=True)
    skipped = dict(report.skipped)
    for rule in ("seed-repeats", "snapshot-exact", "hidden-in-anchor", "gymnasium-accepts"):
        assert skipped[rule] == "judged once no-global-random holds"
    assert "info-complete" in report.passed and "no-leaked-files" in report.passed


def test_nothing_else_is_judged_where_nothing_can_be_played() -> None:
    report = found(faulty_envs.CannotBegin, in_process=True)
    assert report.failed == ("plays",) and not report.passed
    assert {reason for _, reason in report.skipped} == {"judged once plays holds"}


def test_without_other_processes_the_rules_that_need_them_are_skipped_and_not_passed() -> None:
    for kind, rule, _ in faulty_worlds.ELSEWHERE:
        if rule not in ("no-clock", "copies-isolated", "seed-repeats"):
            report = found(kind, episodes=1, in_process=True)
            assert dict(report.skipped)[rule] == "other processes were not asked for"


def test_the_check_leaves_the_global_generators_as_they_were() -> None:
    random.seed(4)
    np.random.seed(4)
    before = random.getstate(), repr(np.random.get_state())
    with contextlib.suppress(CheckFailed):
        check(faulty_worlds.SeedsNumpy, in_process=True)
    check(sound_env.Sound, in_process=True)
    assert random.getstate() == before[0]
    state = np.random.get_state()
    assert repr(state) == before[1] or "SeedsNumpy itself moved it"
