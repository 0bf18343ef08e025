"""Journeys with things of one's own, each named as `path/to/file.py:Class` on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from journey import fails, works, works_as_printed

OWN = '''
from turngym.agents import Agent, Decision
from turngym.envs.multiagent import Player
from turngym.trainers.algorithms.grpo import GRPO
from turngym.trainers.reward_models.base.model import RewardConfig, RewardModel
from turngym.wrappers import TextWrapper

class Sure(Agent):
    """Solves the tower of two discs."""
    def act(self, requests): return [Decision(("A B", "A C", "B C")[request.turn]) for request in requests]

class Shy(Agent):
    def act(self, requests): return [Decision("I would rather not") for _ in requests]

class FirstLegal(Agent):
    def act(self, requests): return [Decision(request.legal_actions[0]) for request in requests]

class LastLegal(Player):
    def begin(self, view, generator): pass
    def act(self, view): return view.legal_actions[-1]

class Bonus(TextWrapper):
    def __init__(self, env, amount=1.0):
        super().__init__(env)
        self.amount = amount
    def on_step(self, played): return played.reward + self.amount, False

class Longest:
    def score(self, trajectory): return float(len(trajectory.turns))

class Half(RewardModel[RewardConfig]):
    name = "half"
    Config = RewardConfig
    def rewards(self, trajectories): return [[0.5 for _ in each.turns] for each in trajectories]

class Mine(GRPO):
    """A method of one's own."""
'''
HANOI = ["turngym/TowerOfHanoi-v0", "--option", "discs=2", "--episodes", "1"]
TINY_WORDS = (
    "--env-options view=coordinates max_turns=4 max_moves=2 --iterations 1 --no-control --embedded.hidden-size 16 "
    "--embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 340 --warmup.demonstrations 4 --warmup.epochs 1 "
    "--rollout.groups 2 --rollout.group-size 2 --evaluation.episodes 2 --evaluation.every 0"
)
TINY = TINY_WORDS.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def evaluated(folder: Path, *words: str) -> tuple[float, float, int]:
    """Return success, return and faults of the only environment."""
    (found,) = works(folder, "eval", *words, "--json").result["environments"].values()
    return found["success"]["value"], found["return"]["value"], found["faults"]["value"]


@pytest.mark.integration
def test_a_new_environment_works_with_the_commands_that_are_printed(folder: Path) -> None:
    printed = [line.strip() for line in works(folder, "new-env", "LockPicker").lines]
    commands = [line for line in printed if line.startswith("turngym ")]
    assert [line.split()[1] for line in commands] == ["check", "play", "eval", "train"]
    check, play, evaluate, train = commands
    assert " passes: " in works_as_printed(folder, check, "--episodes", "1", "--in-process").out
    assert "solved after" in works_as_printed(folder, play, "--agent", "expert", "--seed", "1").out
    assert "faults" in works_as_printed(folder, evaluate).out
    works_as_printed(folder, train, "--help")


@pytest.mark.integration
def test_evaluations_of_ones_own_are_compared_and_ranked(folder: Path) -> None:
    works(folder, "new-env", "LockPicker")
    lock = "lock_picker.py:LockPicker"
    for agent, out in (("own.py:FirstLegal", "first"), ("expert", "expert")):
        works(folder, "eval", lock, "--agent", agent, "--episodes", "5", "--out", out)
    first, expert = (
        json.loads((folder / out / "results.json").read_text())["mean"]["value"] for out in ("first", "expert")
    )
    assert expert == 1 > first
    for out in ("first", "expert"):
        checked = works(folder, "verify", out)  # it imports no file that a submission names: only installed packages
        assert "'my/LockPicker-v0' is not registered here" in checked.out and "self-reported" in checked.out
    compared = " ".join(works(folder, "compare", "first", "expert").out.split())
    assert "lock_picker" in compared.lower() or "LockPicker" in compared
    assert (
        "2 submissions in 1 table"
        in works(folder, "leaderboard", "first", "expert", "--no-verify", "-o", "board.html").out
    )
    page = (folder / "board.html").read_text("utf8")
    assert "own.py:FirstLegal" in page


def test_more_tasks_than_there_are_is_told_with_the_way_out(folder: Path) -> None:
    works(folder, "new-env", "LockPicker")
    words = ["--agent", "expert", "--episodes", "20"]
    fails(folder, "eval", "lock_picker.py:LockPicker", *words, says=("gave only 7 distinct instances", "--repeats"))
    few = ["--option", "start=random", "--option", "discs=2"]
    fails(folder, "eval", HANOI[0], *few, *words, says=("has 8 instances, fewer than the 20", "--repeats"))
    shown = works(folder, "eval", HANOI[0], *words)
    assert "has a single instance, which is played 20 times" in shown.err


def test_an_agent_of_ones_own_plays(folder: Path) -> None:
    assert evaluated(folder, *HANOI, "--agent", "own.py:Sure") == (1, 1, 0)
    assert evaluated(folder, *HANOI, "--agent", "own.py:Shy") == (0, 0, 0)
    assert evaluated(folder, *HANOI, "--agent", "own:Sure") == (1, 1, 0), "a module is named alike"
    shown = works(folder, "play", *HANOI[:3], "--agent", "own.py:Sure").out
    assert "solved after 3 turns: return 1, score 1" in shown


def test_a_wrapper_and_a_verifier_of_ones_own_count(folder: Path) -> None:
    assert evaluated(folder, *HANOI, "--agent", "own.py:Sure", "--wrapper", "own.py:Bonus:amount=2") == (1, 7, 0)
    words = ["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "4", "--out", "best"]
    works(folder, *words, "--best-of", "3", "--verifier", "own.py:Longest")
    rows = [json.loads(line) for line in (folder / "best" / "episodes.jsonl").read_text().splitlines()]
    assert len(rows) == 12 and all(row["verifier"]["score"] == row["length"] for row in rows)


def test_a_player_of_ones_own_meets_others(folder: Path) -> None:
    players = ("first_legal", "own.py:LastLegal", "shy=own.py:Shy")
    answer = works(
        folder, "tournament", "turngym/TicTacToe-v0", "--players", *players, "--blocks", "2", "--out", "games"
    )
    assert "18 games in 2 blocks" in answer.out
    rates = {line.split()[0]: line.split() for line in answer.lines if re.match(r" ?(first_legal|own\.py|shy) ", line)}
    assert rates or "own.py:LastLegal" in answer.out
    assert "games is accepted, label: replayed" in works(folder, "verify", "games").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["eval", "own.py:Bonus", "--agent", "random"], ("expected an environment", "turngym.envs.TextEnv")),
        (["eval", *HANOI, "--agent", "own.py:Bonus"], ("expected an agent", "turngym.agents.Agent")),
        (["eval", *HANOI, "--agent", "own.py:Shi"], ("own.py has no 'Shi'. Did you mean 'Shy'?",)),
        (["eval", *HANOI, "--agent", "won.py:Shy"], ("there is no file", "Did you mean 'own.py'?")),
        (["eval", *HANOI, "--agent", "own.py"], ("Name a class or function in it, as in own.py:Name.",)),
        (["eval", *HANOI, "--agent", "random", "--wrapper", "own.py:Shy"], ("turngym.wrappers.TextWrapper",)),
        (["train", "--algorithm", "own.py:Half"], ("expected a training method",)),
        (["train", "--reward-model", "own.py:Shy"], ("expected a reward model",)),
        (["tournament", "turngym/TicTacToe-v0", "--players", "random", "own.py:Bonus"], ("own.py", "expected a")),
    ],
)
def test_a_thing_of_another_kind_is_told(words: list[str], says: tuple[str, ...], folder: Path) -> None:
    fails(folder, *words, says=says, apart="own.py:Shi" in words)


@pytest.mark.integration
@pytest.mark.parametrize(
    "words",
    [
        ["--algorithm", "own.py:Mine"],
        ["--algorithm", "own.py:Mine+epo"],
        ["--reward-model", "own.py:Half"],
        ["--wrapper", "own.py:Bonus:amount=2"],
    ],
)
def test_things_of_ones_own_train(words: list[str], folder: Path) -> None:
    lines = works(folder, "train", *TINY, *words, "--run-dir", "run").lines
    works_as_printed(folder, lines[-1].strip())
    (record,) = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert record["train/updates"] > 0
