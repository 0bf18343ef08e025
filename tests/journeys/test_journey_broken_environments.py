"""Journeys with an environment of one's own that raises, prints, exits, or returns something wrong.

Every command says in a sentence what broke, or counts it; none shows a traceback. An environment that hangs is given up
after a minute by worker processes alone, and no command has an option for that, so it is tested with vectors.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from journey import fails, walk, works

BROKEN = '''
import os, sys
from turngym.agents import Agent, Decision
from turngym.envs import Outcome, TextEnv

class Sound(TextEnv[str]):
    """Two turns of any text; then it is solved."""
    instructions = "Say go twice."
    def __init__(self, *, max_turns=4, split="train", env_id="", render_mode=None):
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
    def begin(self, task):
        self.number = self.draw(lambda generator: int(generator.integers(1000)), str)
        self.said = 0
        return f"Task {self.number}."
    def apply_action(self, action):
        self.said += 1
        return Outcome("Going.", 0.5, self.said == 2, self.said == 2)
    def anchor(self): return f"{self.number} {self.said}"
    def legal_actions(self): return ("go",)
    def save_state(self): return [self.number, self.said]
    def load_state(self, state): self.number, self.said = state
    def expert_action(self): return "go"

class Making(Sound):
    def __init__(self, **options): raise ValueError("no board")
class Reset(Sound):
    def begin(self, task): raise ValueError("no board")
class Step(Sound):
    def apply_action(self, action): raise ValueError("no board")
class OddStep(Sound):
    def apply_action(self, action): return super().apply_action(action) if self.number % 2 else 1 / 0
class Closing(Sound):
    def close(self): raise ValueError("no board")
class Printing(Sound):
    def apply_action(self, action):
        print("printed")
        os.write(1, b"written\\n")
        return super().apply_action(action)
class Leaving(Sound):
    def apply_action(self, action): sys.exit(7)
class Dying(Sound):
    def apply_action(self, action): os._exit(7)
class DyingAtReset(Sound):
    def begin(self, task): os._exit(7)
class NotANumber(Sound):
    def apply_action(self, action): return Outcome("Going.", float("nan"))
class NoOutcome(Sound):
    def apply_action(self, action): return "Going."
class NoObservation(Sound):
    def begin(self, task): super().begin(task)

class Go(Agent):
    def act(self, requests): return [Decision("go") for _ in requests]
'''
RAISED = ("error: ", "ValueError: no board")
NO_OUTCOME = "apply_action() of broken.py:NoOutcome must return an Outcome, got str."
NO_OBSERVATION = "begin() of broken.py:NoObservation returned None: it must return the first observation."
NEVER_PLAYED = {
    "Making": RAISED,
    "Reset": ("error: broken/Reset-v0 cannot start an episode: exception: ValueError: no board.",),
    "NoObservation": (f"error: {NO_OBSERVATION}",),
}
"""Environment -> what `eval` says of one in which no episode begins."""
FAULTS = {
    "Step": "exception: ValueError: no board",
    "Leaving": "exception: SystemExit: 7",
    "NotANumber": "got the reward nan, which is not finite",
    "NoOutcome": NO_OUTCOME,
}
"""Environment -> why its episodes broke."""
TINY_WORDS = (
    "--iterations 1 --no-control --embedded.hidden-size 16 --embedded.layers 1 --embedded.heads 2 "
    "--embedded.vocabulary 340 --warmup.demonstrations 4 --warmup.epochs 1 --rollout.groups 2 --rollout.group-size 2 "
    "--evaluation.episodes 4 --evaluation.every 0 --run-dir run"
)
TINY = TINY_WORDS.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "broken.py").write_text(BROKEN)
    return tmp_path


def evaluation(name: str, *more: str) -> list[str]:
    return ["eval", f"broken.py:{name}", "--agent", "broken.py:Go", "--episodes", "6", *more]


def reasons(shown: str) -> str:
    """Return what was printed as one line, however it was wrapped."""
    return " ".join(shown.split())


@pytest.mark.parametrize("name", NEVER_PLAYED)
def test_eval_says_why_no_episode_begins(name: str, folder: Path) -> None:
    fails(folder, *evaluation(name), says=NEVER_PLAYED[name])


@pytest.mark.parametrize("name", FAULTS)
def test_eval_counts_what_breaks_and_says_why(name: str, folder: Path) -> None:
    answer = works(folder, *evaluation(name, "--out", "out"))
    assert "faults 6 of 6" in reasons(answer.out) and "success % 0.0" in reasons(answer.out)
    told = reasons(answer.out).rpartition(f"broken/{name}-v0 broke in 6 of 6 episodes, which count as failures: ")[2]
    assert FAULTS[name] in told, str(answer)
    rows = [json.loads(line) for line in (folder / "out" / "episodes.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["env_error"] * 6


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_eval_plays_the_episodes_that_do_not_break(backend: str, folder: Path) -> None:
    result = works(folder, *evaluation("OddStep", "--json", "--backend", backend)).result
    (found,) = result["environments"].values()
    faults = found["faults"]["value"]
    assert 0 < faults < 6 and found["success"]["value"] == pytest.approx(1 - faults / 6)
    assert found["return"]["value"] == pytest.approx(1 - faults / 6)


@pytest.mark.parametrize("name", ["Closing", "Printing"])
def test_eval_is_whole_where_an_environment_cannot_be_closed_or_prints(name: str, folder: Path) -> None:
    answer = works(folder, *evaluation(name, "--json"))
    (found,) = answer.result["environments"].values()
    assert (found["success"]["value"], found["return"]["value"], found["faults"]["value"]) == (1, 1, 0)
    assert name != "Printing" or ("printed" in answer.err and "written" in answer.err)


def test_eval_in_processes_survives_an_environment_that_ends_its_process(folder: Path) -> None:
    """The search for tasks and the hash of the rules play it too, and must not die of it either."""
    answer = works(folder, *evaluation("Dying", "--backend", "process"))
    assert "faults 6 of 6" in reasons(answer.out) and "worker died (exit code 7)" in reasons(answer.out)
    begin = ("error: broken/DyingAtReset-v0 cannot start an episode: worker died (exit code 7).",)
    fails(folder, *evaluation("DyingAtReset", "--backend", "process"), says=begin)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Making", (*RAISED, "broken.py, line")),
        ("Reset", (*RAISED, "broken.py, line")),
        ("Step", (*RAISED, "broken.py, line")),
        ("Leaving", ("error: SystemExit: 7", "broken.py, line", "sys.exit(7)")),
        ("NoOutcome", (f"error: {NO_OUTCOME}",)),
        ("NoObservation", (f"error: {NO_OBSERVATION}",)),
    ],
)
def test_play_says_what_broke(name: str, says: tuple[str, ...], folder: Path) -> None:
    fails(folder, "play", f"broken.py:{name}", "--agent", "expert", "--seed", "1", says=says)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("Making", "making it raised ValueError: no board in __init__, line"),
        ("Step", "playing raised ValueError: no board in apply_action, line"),
        ("NotANumber", "the reward must be a finite float, got nan"),
        ("Closing", "close() before any reset raised ValueError: no board in close, line"),
    ],
)
def test_check_names_the_rule_and_the_line(name: str, seen: str, folder: Path) -> None:
    answer = walk(folder, "check", f"broken.py:{name}", "--episodes", "1", "--in-process")
    assert answer.status == 1 and seen in answer.out and "FAIL" in answer.out, str(answer)


def test_check_says_that_an_environment_exits(folder: Path) -> None:
    fails(folder, "check", "broken.py:Leaving", "--episodes", "1", says=("error: SystemExit: 7", "sys.exit(7)"))


@pytest.mark.integration
@pytest.mark.parametrize("name", ["Making", "Reset", "Step", "Leaving", "NotANumber", "NoOutcome"])
def test_train_says_what_broke(name: str, folder: Path) -> None:
    says = RAISED if name in ("Making", "Reset", "Step") else (FAULTS[name],)
    fails(folder, "train", "--env", f"broken.py:{name}", *TINY, says=says)


@pytest.mark.integration
@pytest.mark.parametrize("name", ["Closing", "Printing"])
def test_train_goes_on_where_an_environment_cannot_be_closed_or_prints(name: str, folder: Path) -> None:
    answer = works(folder, "train", "--env", f"broken.py:{name}", *TINY)
    assert "on 4 test tasks: 100.0 % before training, 100.0 % after" in answer.out, str(answer)
