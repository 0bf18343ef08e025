"""Whole numbers that no float holds, from environments, judges, servers and files: refused or shown, never a crash."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import sound_env
from tournament_games import HighDigits, plan

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.agents.verifiers import Verdict, judge
from turngym.arithmetic import as_float, is_finite
from turngym.benchmarks.pages.viewer.jsonl import number as viewed
from turngym.benchmarks.study.plan import plan_of
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.columns import valid_columns
from turngym.envs.adapters.openenv_reading import number, read_observation
from turngym.envs.adapters.replayed import ReplayedEnv, Reply
from turngym.envs.multiagent.table import Table, are_rewards
from turngym.envs.servers.openenv.messages import observation_data
from turngym.envs.tools.questions.judges import find_judge
from turngym.envs.tools.questions.reading import FileTask
from turngym.envs.vector.slots.fitting import finite_reward, valid_table
from turngym.errors import BrokenCode, ConfigError, NotFinite, TurngymError
from turngym.trainers.core.finite import screen_rewards
from turngym.trainers.report.curve import curve_points
from turngym.trainers.report.findings import series
from turngym.trainers.reward_models.base.recordings import read_trajectories

HUGE = [10**400, -(10**400), 10**5000]
SOUND_INFO = {"anchor": "", "legal_actions": (), "action_is_valid": True, "success": -1, "progress": 0.0, "score": 0.0}
huge = pytest.mark.parametrize("value", HUGE, ids=["large", "negative", "beyond-digits"])


@huge
def test_the_helpers_take_any_number(value: int) -> None:
    assert not is_finite(value) and as_float(value) == math.copysign(math.inf, 1 if value > 0 else -1)
    assert is_finite(10**300) and not any(map(is_finite, (math.nan, -math.inf, None, "1", [1.0])))


@huge
def test_an_environment_that_gives_one_has_a_named_fault(value: int) -> None:
    with pytest.raises(NotFinite, match=r"the reward -?inf"):
        finite_reward(value)
    with pytest.raises(NotFinite, match=r"the reward part 'goal' of -?inf"):
        valid_table({**SOUND_INFO, "fault": "", "reward_components": {"goal": value}})
    for key in ("score", "progress"):
        with pytest.raises(TypeError, match=rf"{key}'. must be a"):
            valid_table({**SOUND_INFO, "fault": "", key: value})
    with pytest.raises(TypeError, match=r"must be a finite number or a text, got -?inf"):
        valid_columns({"distance": value})


@huge
def test_a_judge_that_returns_one_is_named(value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_env, "huge", lambda task, given: value, raising=False)
    judged = find_judge("sound_env:huge", ())
    with pytest.raises(BrokenCode, match=r"must return True, False or a finite number, got '-?inf'"):
        judged(FileTask("1", "?"), "answer")


class HugeForeign(ReplayedEnv):
    """A third-party environment that gives one as a reward, for an action that is legal or not."""

    instructions = "Say anything."

    def __init__(self, value: int) -> None:
        super().__init__(max_turns=5, split="train", env_id="", render_mode=None)
        self.value, self.source = value, "huge"

    def foreign_reset(self, seed: int) -> str:
        return "say"

    def foreign_step(self, action: str) -> Reply:
        return Reply("said", self.value)


@huge
def test_a_foreign_environment_is_blamed_and_not_the_agent(value: int) -> None:
    env = HugeForeign(value)
    env.reset(seed=0)
    with pytest.raises(TurngymError, match=r"gave the reward -?inf: it is broken"):
        env.step("anything")


@huge
def test_servers_messages_are_read_or_refused(value: int) -> None:
    with pytest.raises(ValueError, match=r"the reward -?inf is not a finite number"):
        read_observation({"observation": {"text": "a"}, "reward": value})
    assert number(value, 0.5) == 0.5
    sent = observation_data("a", {"score": value, "progress": value}, 0.0)
    assert sent["metadata"]["score"] is None and sent["metadata"]["progress"] is None


@huge
def test_a_game_of_seats_refuses_it(value: int) -> None:
    assert not are_rewards([0.0, value], 2)
    with pytest.raises(ConfigError, match=r"invalid_penalty must be at least 0 and finite, got -?inf"):
        Table(HighDigits(), invalid_penalty=value)


class HugeMetric(HighDigits):
    """A game with a metric that no float holds."""

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), "huge": 10**400}


class HugeGameScore(HighDigits):
    """A game with such a score."""

    def score(self, seat: int) -> float:
        return 10**400


@pytest.mark.parametrize(("name", "errors"), [("HugeMetric", 0), ("HugeGameScore", 4)])
def test_a_tournament_counts_games_whose_rules_give_one(name: str, errors: int) -> None:
    found, records = play_tournament(plan("random", "ace", game=f"{__name__}:{name}", blocks=1))
    assert len(records) == 4 and found["env_errors"] == errors
    assert errors or records[0]["metrics"]["huge"] is None


@huge
def test_a_verdict_is_none_at_all(value: int) -> None:
    verifier = SimpleNamespace(score=lambda trajectory: value)
    played = Trajectory(EpisodeSpec(0, 0), turns=[Turn("a", "", "b")])
    assert judge(verifier, played).as_json()["score"] is None
    assert Verdict(value).as_json()["score"] is None


def test_files_with_one_are_shown_and_read(tmp_path: Path) -> None:
    assert viewed(10**400) is None
    records = [{"iteration": 0, "turns_total": 64, "x": 10**400, "rollout/faults": 10**400}]
    assert series(records, "x") == [] and curve_points(records, "x") == []
    with pytest.raises(ConfigError, match="effect must be the smallest difference"):
        plan_of("mine", {"arms": {"a": "--algorithm ppo"}, "effect": 10**400})
    row = {"env": "a", "success": 0, "score": 10**400, "final_observation": "", "turns": []}
    (tmp_path / "played.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(ConfigError, match="holds no recorded episodes"):
        read_trajectories(tmp_path / "played.jsonl")


def test_training_stops_at_the_episode() -> None:
    played = Trajectory(EpisodeSpec(0, 0), turns=[Turn("a", "", "b", reward=10**400)])
    with pytest.raises(TurngymError, match="the reward"):
        screen_rewards([played], "stop")
