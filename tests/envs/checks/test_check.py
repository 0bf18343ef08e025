"""The check as a whole: what can be checked, what the report says, and where the evidence points."""

import json
import os
import pickle
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import faulty_envs
import faulty_states
import gymnasium
import numpy as np
import pytest
from sound_env import Optional, Sound
from toy_envs import Counter, Picture

import turngym
from turngym.envs.check import CheckFailed, Report, Result, check
from turngym.envs.checks.case import canonical, record, replay
from turngym.envs.checks.hidden import _counters
from turngym.envs.checks.leaks import holdings
from turngym.envs.checks.rule import Finding, difference, excerpts, raised
from turngym.envs.checks.source import source_of
from turngym.envs.checks.table import RULES
from turngym.envs.core import Outcome
from turngym.envs.own import FromFile, nearest_env
from turngym.errors import BrokenCode, ConfigError, SnapshotUnsupported, TurngymError, UnknownName
from turngym.loading import load_file

quick = partial(check, episodes=1, in_process=True)


class Harder(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Doubles the reward."""

    def __init__(self, env: gymnasium.Env[Any, Any], factor: float = 2.0) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, factor=factor)
        super().__init__(env)
        self.factor = factor

    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return observation, float(reward) * self.factor, *rest


class Plain(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Does not know how it was made."""


def test_an_environment_of_a_file_that_is_not_installed_is_checked(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text("TEXT = 'Open boxes. Answer with: open N'\n")
    source = "from boxes import TEXT\nfrom sound_env import Sound\n\nclass Mine(Sound):\n    instructions = TEXT\n"
    (tmp_path / "my_game.py").write_text(source)
    report = check(f"{tmp_path / 'my_game.py'}:Mine", episodes=1)
    assert not report.failed and "snapshot-elsewhere" in report.passed
    assert report.name.endswith("my_game.py:Mine")
    assert load_file(tmp_path / "my_game.py") is load_file(tmp_path / "my_game.py"), "executed once"
    sys.modules.pop("boxes")


def test_a_file_that_cannot_be_run_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text("import nothing_of_that_name\n")
    before = set(sys.modules), list(sys.path)
    with pytest.raises(BrokenCode, match="No module named 'nothing_of_that_name'"):
        source_of(f"{tmp_path / 'half.py'}:Mine")
    assert (set(sys.modules), sys.path) == before


def test_ids_classes_environments_and_functions_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Counter(4, max_turns=9)
    env.reset(seed=0)
    before = env.snapshot()
    for given in (
        "toy/Counter-v0",
        "toy_envs:toy/Counter-v0",
        "toy_envs:Counter",
        Counter,
        env,
        lambda **k: Sound(**k),
    ):
        assert not quick(given).failed
    assert env.snapshot() == before, "copies are checked"
    assert quick("toy_envs:Counter").name == "toy_envs:Counter" == quick(Counter).name


def test_wrapped_environments_are_made_again_with_their_wrappers() -> None:
    outer = Harder(gymnasium.wrappers.OrderEnforcing(Harder(Sound(max_turns=8), 3.0)))
    copy = source_of(outer)[1]()
    assert [type(layer).__name__ for layer in (copy, copy.env, copy.env.env)] == ["Harder", "OrderEnforcing", "Harder"]  # type: ignore[attr-defined]
    assert copy.env.env.factor == 3.0 and copy.unwrapped.max_turns == 8  # type: ignore[attr-defined]
    assert not quick(outer).failed
    registered = Harder(gymnasium.make("toy/Counter-v0", goal=2))
    copy = source_of(registered)[1]()
    assert isinstance(copy, Harder) and copy.unwrapped.goal == 2  # type: ignore[attr-defined]
    assert quick(registered).name == "toy/Counter-v0"
    with pytest.raises(ConfigError, match="the wrapper Plain does not know how it was made"):
        check(Plain(Sound()))


def test_a_fault_of_a_wrapper_is_found() -> None:
    with pytest.raises(CheckFailed) as caught:
        quick(Harder(Sound(), float("inf")))
    assert caught.value.report.failed == ("reward-finite",)


def test_options_reach_the_constructor() -> None:
    assert not quick(Optional, options={"prize": "ring"}).failed
    assert "find the ring" in source_of("sound_env:Optional", {"prize": "ring"})[1]().reset(seed=0)[0]
    assert "find the ring" in source_of(Optional("ring"))[1]().reset(seed=0)[0]
    with pytest.raises(CheckFailed, match="making it raised ValueError: no prize cup in __init__"):
        quick("sound_env:Optional", options={"prize": "cup"})
    with pytest.raises(ConfigError, match=r"Optional has no option 'prise'\. Did you mean 'prize'"):
        quick("sound_env:Optional", options={"prise": "cup"})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("toy/Conter-v0", UnknownName, "Did you mean 'toy/Counter-v0'?"),
        ("sokobann", UnknownName, "Did you mean 'turngym/Sokoban-v0'?"),
        ("zzz", UnknownName, "no environment named 'zzz'. `turngym list` shows all."),
        ("toy_envs:Countr", UnknownName, "toy_envs has no 'Countr'. Did you mean 'Counter'?"),
        ("json:Env", UnknownName, "It has no class of turngym.envs.TextEnv at all."),
        (
            "toy_envs:np",
            ConfigError,
            "np of toy_envs is an object of the type module, expected an environment",
        ),
        ("no_such_module:Env", UnknownName, "no module named 'no_such_module', which 'no_such_module:Env' needs"),
        (f"{Path(__file__).parents[2]}/support/toy_env.py:Counter", UnknownName, "Did you mean 'toy_envs.py'?"),
        (Picture, ConfigError, "TextEnv and its wrappers, got Picture"),
        (Picture(), ConfigError, "pass its id or a function"),
        ("CartPole-v1", ConfigError, "got CartPoleEnv: derive your class from TextEnv"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_sentence(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        check(given)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_the_nearest_id_is_found_whatever_its_case_namespace_and_version() -> None:
    for wrong in ("frozenlake", "FrozenLake-v7", "turngym/frozen-lake", "gym/FrozenLake"):
        assert nearest_env(wrong).startswith("Did you mean 'turngym/FrozenLake-v0'?")
    assert nearest_env("textgame", ["textgames"]).startswith("Did you mean 'textgames'?")


def test_a_function_that_cannot_be_sent_elsewhere_is_checked_in_this_process() -> None:
    unsendable = threading.Lock()
    report = check(lambda **options: Sound(**options) if unsendable else None, episodes=1)
    reasons = dict(report.skipped)
    assert "cannot be sent to another process (TypeError" in reasons["no-hash-order"] and not report.failed


def test_a_snapshot_that_cannot_be_is_skipped_with_its_reason() -> None:
    class NoSnapshot(Sound):
        def snapshot(self) -> bytes:
            raise SnapshotUnsupported("replay was shown unequal")

    skipped = dict(quick(NoSnapshot).skipped)
    assert skipped["snapshot-exact"] == skipped["snapshot-json"] == "replay was shown unequal"


def test_all_findings_come_in_one_error_that_teaches() -> None:
    class Bad(faulty_envs.WrongExpert, faulty_envs.TooMuchProgress):
        pass

    with pytest.raises(CheckFailed) as caught:
        check(Bad, in_process=True)
    assert isinstance(caught.value, TurngymError) and isinstance(caught.value, AssertionError)
    text = str(caught.value)
    assert "breaks 2 of its promises" in text and "expert-valid: Every expert action is valid." in text
    assert "seen: the expert's action 'jump' is not valid (seed 0, turn 1)" in text
    assert f"why:  {RULES['expert-valid'].why}" in text and f"fix:  {RULES['info-values'].fix}" in text
    assert "more of this kind" in text
    assert "ok    seed-repeats: " in str(caught.value.report) and "FAIL  expert-valid" in str(caught.value.report)


def test_evidence_repeats_the_fault() -> None:
    with pytest.raises(CheckFailed) as caught:
        quick(faulty_states.TellsInTheAnchor, seed=5)
    (finding,) = next(result.findings for result in caught.value.report.results if result.findings)
    assert (finding.seed, finding.turn) == (5, 0)
    env = faulty_states.TellsInTheAnchor()
    env.reset(seed=5)
    assert str(env.place) in finding.ours and finding.ours != finding.theirs


def test_the_report_is_json_with_a_status_for_every_rule() -> None:
    with pytest.raises(CheckFailed) as caught:
        quick(faulty_envs.WrongType)
    report = json.loads(json.dumps(caught.value.report.as_json()))
    assert set(report) == {"name", "ok", "seed", "episodes", "rules"} and report["ok"] is False
    assert [rule["name"] for rule in report["rules"]] == list(RULES)
    keys = {"name", "status", "promise", "why", "fix", "reason", "evidence", "seconds"}
    for rule in report["rules"]:
        assert set(rule) == keys and rule["status"] in ("passed", "failed", "skipped")
        assert bool(rule["reason"]) == (rule["status"] == "skipped")
        assert bool(rule["evidence"]) == (rule["status"] == "failed")
    broken = next(rule for rule in report["rules"] if rule["status"] == "failed")
    assert set(broken["evidence"][0]) == {"seen", "seed", "turn", "ours", "theirs"}


def test_results_are_told_as_they_come() -> None:
    started: list[str] = []
    judged: list[Result] = []
    quick(Sound, on_start=lambda rule: started.append(rule.name), on_result=judged.append)
    assert started == list(RULES) == [result.rule.name for result in judged]
    assert turngym.check is check and isinstance(check(Counter, in_process=True), Report)


def test_rules_come_after_their_causes_and_are_named_to_stay() -> None:
    seen: set[str] = set()
    for name, rule in RULES.items():
        assert name == rule.name and name == name.lower() and " " not in name
        assert set(rule.after) <= seen, f"{name} comes before what it needs"
        assert rule.promise.endswith(".") and rule.why.endswith(".") and rule.fix.endswith(".")
        seen.add(name)


def test_the_number_of_episodes_is_at_least_one() -> None:
    with pytest.raises(ConfigError, match="episodes must be at least 1, got 0"):
        check(Counter, episodes=0)


def test_canonical_text_tells_values_apart() -> None:
    values = [1, 1.0, True, "1", (1,), [1], ("1",), np.array([1]), np.array([1.0]), {"a": 1}, float("nan"), None]
    assert len({canonical(value) for value in values}) == len(values)
    large = np.zeros(5000)
    other = large.copy()
    other[2500] = 1
    assert canonical(large) != canonical(other)  # NumPy's own repr would hide the difference
    assert canonical({2: 1, "a": 2}) == canonical({"a": 2, 2: 1})


def test_excerpts_show_the_place_of_the_first_difference() -> None:
    ours, theirs = excerpts("x" * 500 + "left" + "y" * 500, "x" * 500 + "right" + "y" * 500)
    assert "left" in ours and "right" in theirs and len(ours) < 100
    assert excerpts("short", "shorter") == ("short", "shorter")
    assert [str(found) for found in difference("it ends", ["a"], ["a", "b"], 3)] == [
        "it ends (seed 3, turn 1): expected '0 turns', got '1 turns'"
    ]
    assert not list(difference("it ends", ["a"], ["a"], 3))
    assert str(Finding("alone")) == "alone"


def test_an_error_is_told_with_the_authors_own_line() -> None:
    try:
        faulty_envs.CannotBegin().reset(seed=0)
    except KeyError as error:
        assert raised(error).startswith("KeyError: 'no such cave' in begin, line ")
        assert raised(error).endswith(" of faulty_envs.py")
    assert raised(ValueError("alone")) == "ValueError: alone"


def test_a_recorded_episode_replays_to_the_same_texts_and_mixes_good_and_odd_actions() -> None:
    episode = record(Sound(), 3)
    assert replay(Sound(), 3, episode.actions) == episode.texts and episode.is_over
    many = [turn for seed in range(20) for turn in record(Sound(), seed).turns[1:]]
    assert {turn.is_listed for turn in many} == {True, False}
    assert {turn.info["action_is_valid"] for turn in many} == {True, False}


def test_a_counter_of_turns_is_told_from_a_number_that_sometimes_moves() -> None:
    counting = record(faulty_states.CountsTurns(), 1)
    assert _counters(counting)[0] == {2}
    assert _counters(record(Sound(), 1))[0] == set()


def test_holdings_count_what_is_open() -> None:
    before = holdings()
    with open(os.devnull):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        now = holdings()
        child.communicate(b"\n")
    if "open files" in before:
        assert now["open files"].total() == before["open files"].total() + 2
        assert now["open files"]["/dev/null"] == before["open files"]["/dev/null"] + 1
        assert now["processes"].total() == before["processes"].total() + 1
    assert holdings() == before


def test_makers_can_be_sent_to_another_process() -> None:
    path = Path(__file__).parents[2] / "support" / "sound_env.py"
    maker = pickle.loads(pickle.dumps(FromFile(str(path), "Optional", {"prize": "ring"})))
    assert maker().prize == "ring" and maker(prize="coin").prize == "coin"


class KeepsItsActions(Sound):
    actions: ClassVar[list[str]] = []

    def apply_action(self, action: str) -> Outcome[str]:
        self.actions.append(action)
        return super().apply_action(action)


def test_the_same_seed_plays_the_same_actions_again() -> None:
    played = []
    for _ in range(2):
        KeepsItsActions.actions.clear()
        quick(KeepsItsActions)
        played.append(tuple(KeepsItsActions.actions))
    assert played[0] == played[1]
