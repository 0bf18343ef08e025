"""``turngym eval``: the numbers, the folder that can be checked and repeated, and the messages."""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from small import small_model

from turngym.__main__ import main
from turngym.agents.intervals import cluster_bootstrap, share, wilson
from turngym.benchmarks.evaluation.rulesets import ruleset_hash
from turngym.envs.textgames.guess_the_number import GuessTheNumber

GUESS = "turngym/GuessTheNumber-v0"
FILES = {"metadata.json", "config.json", "results.json", "episodes.jsonl", "transcripts.jsonl"}

AGENTS = """
from turngym.agents.core import Agent, Decision

class Halver(Agent):
    def __init__(self, settings):
        self.seed = settings.seed
    def act(self, requests):
        return [Decision("50") for request in requests]

def nobody(settings):
    return "no agent"
"""


@pytest.fixture
def own_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a module with agents of a user's own on the path."""
    (tmp_path / "halving_agents.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("halving_agents", None)


def evaluation(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return what an evaluation prints as JSON."""
    assert main(["eval", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf8").splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of an evaluation of the random agent, which wins some games and loses others."""
    path = tmp_path_factory.mktemp("evaluations") / "random"
    words = ["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "12", "--seed", "5", "--baselines"]
    assert main([*words, "--out", str(path)]) == 0
    return path


def test_the_expert_always_finds_the_number(capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluation(capsys, GUESS, "--agent", "expert", "--episodes", "20")
    numbers = found["environments"][GUESS]
    assert numbers["success"]["value"] == numbers["success"]["ci_high"] == found["mean"]["value"] == 1.0
    assert numbers["success"]["ci_low"] == pytest.approx(wilson(20, 20)[0]), "20 games leave room for a failure"
    assert numbers["success"]["n_games"] == 20 and numbers["faults"]["value"] == 0
    assert numbers["turns"]["value"] <= 7, "bisection of 100 numbers"


def test_a_script_of_nonsense_never_does(capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluation(capsys, GUESS, "--agent", "scripted:nonsense", "--episodes", "20")
    numbers = found["environments"][GUESS]
    assert numbers["success"]["value"] == 0.0 and numbers["invalid_actions"]["value"] == 1.0


def test_the_table_shows_means_with_intervals_and_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", GUESS, "--agent", "scripted:50", "--episodes", "10", "--baselines"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    metrics = ["success", "score", "return", "turns", "invalid", "faults", "normalised"]
    assert [row[0] for row in rows if row and row[0] in metrics] == metrics
    success = next(row for row in rows if row and row[0] == "success")
    assert "to" in success and success[-1] == "100.0", "the interval, and the expert's column at the end"


def test_the_folder_holds_what_a_reader_needs(folder: Path) -> None:
    assert {file.name for file in folder.iterdir()} == {*FILES, "baselines.jsonl", "options.json"}
    config = json.loads((folder / "config.json").read_text())
    (environment,) = config["environments"]
    assert environment["env"] == "turngym/FrozenLake-v0" and environment["options"] == {"split": "test"}
    assert environment["ruleset_hash"] == ruleset_hash("turngym/FrozenLake-v0", {"split": "test"})
    episodes = lines_of(folder / "episodes.jsonl")
    assert [episode["seed"] for episode in episodes] == environment["seeds"] and len(set(environment["seeds"])) == 12
    assert len({episode["block_id"] for episode in episodes}) == 12
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["name"] == "random" and metadata["started"][:10] == metadata["date"]


def test_the_results_can_be_recomputed_from_the_episodes(folder: Path) -> None:
    episodes = lines_of(folder / "episodes.jsonl")
    found = json.loads((folder / "results.json").read_text())["environments"]["turngym/FrozenLake-v0"]
    blocks = [episode["block_id"] for episode in episodes]
    for metric, key in (("success", "success"), ("score", "score"), ("return", "returns"), ("turns", "length")):
        interval = share if metric == "success" else cluster_bootstrap
        estimate = interval([float(episode[key]) for episode in episodes], blocks)
        assert found[metric]["value"] == pytest.approx(sum(e[key] for e in episodes) / 12, abs=1e-9)
        assert (found[metric]["ci_low"], found[metric]["ci_high"]) == (estimate.low, estimate.high)
        assert (found[metric]["n_games"], found[metric]["n_blocks"]) == (12, 12)
    assert 0 < found["success"]["value"] < 1, "else this says little"


def test_the_actions_alone_reproduce_rewards_and_transcript_hash(folder: Path) -> None:
    transcripts = lines_of(folder / "transcripts.jsonl")
    for episode, told in zip(lines_of(folder / "episodes.jsonl"), transcripts, strict=True):
        env = gymnasium.make(episode["env"], **episode["options"])
        observation, _ = env.reset(seed=episode["seed"])
        seen = []
        for action in episode["actions"]:
            following, reward, terminated, truncated, info = env.step(action)
            seen.append([observation, action, reward])
            observation = following
        text = json.dumps(seen, ensure_ascii=False)
        assert hashlib.sha256(text.encode()).hexdigest() == episode["transcript_sha256"]
        assert sum(turn[2] for turn in seen) == episode["returns"]
        assert (terminated, truncated) == (episode["terminated"], episode["truncated"])
        assert (info["success"], info["score"]) == (episode["success"], episode["score"])
        assert [[t["observation"], t["action"], t["reward"]] for t in told["turns"]] == seen
        assert told["final_observation"] == observation


def test_normalised_results_lie_between_the_baselines(folder: Path) -> None:
    found = json.loads((folder / "results.json").read_text())
    assert found["normalised"] == {"turngym/FrozenLake-v0": 0.0}, "the random agent is its own baseline"
    assert found["baselines"]["random"]["mean"] == found["mean"]
    assert found["baselines"]["expert"]["mean"]["value"] == 1.0


def test_the_same_seed_writes_the_same_episodes_and_another_seed_others(folder: Path, tmp_path: Path) -> None:
    words = ["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "12"]
    assert main([*words, "--seed", "5", "--num-envs", "3", "--backend", "process", "--out", str(tmp_path / "a")]) == 0
    assert main([*words, "--seed", "6", "--out", str(tmp_path / "b")]) == 0

    def timeless(path: Path) -> bytes:
        rows = lines_of(path / "episodes.jsonl")
        for row in rows:
            assert row.pop("started") and row["seats"]["player_0"].pop("latency") >= 0
        return json.dumps(rows).encode()

    assert timeless(tmp_path / "a") == timeless(folder) != timeless(tmp_path / "b")
    assert (tmp_path / "a" / "transcripts.jsonl").read_bytes() == (folder / "transcripts.jsonl").read_bytes()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["eval", GUESS, "--agent", "expert", "--episodes", "2", "--out", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    resume = "--resume (resume=True in Python) continues with the evaluation in it"
    way_out = f"{resume}, or pass another folder as --out (out)."
    assert shown.err == f"error: {tmp_path} exists already and is not empty: {way_out}\n"
    assert not shown.out and [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert main(["eval", GUESS, "--agent", "expert", "--episodes", "2", "--out", str(tmp_path)]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {*FILES, "options.json"}


def test_without_a_number_a_small_game_plays_all_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["turngym/TowerOfHanoi-v0", "--agent", "expert", "--option", "start=random", "--option", "discs=2"]
    (numbers,) = evaluation(capsys, *words)["environments"].values()
    assert numbers["success"]["n_blocks"] == 3**2 - 1


def test_options_and_split_reach_the_environment(tmp_path: Path) -> None:
    words = ["eval", GUESS, "--agent", "expert", "--episodes", "2", "--split", "dev", "--option", "high=3"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    for episode in lines_of(tmp_path / "episodes.jsonl"):
        assert episode["options"] == {"split": "dev", "high": 3} and episode["length"] <= 2
        assert episode["label"] == f"{GUESS} split=dev high=3"


def test_a_language_model_is_evaluated_with_its_tokens_counted(tmp_path: Path) -> None:
    model = small_model()
    model.save(tmp_path / "model")
    sampling = ["--temperature", "1", "--max-new-tokens", "3", "--format", "plain", "--prompt", "instructions=false"]
    words = ["eval", "turngym/FrozenLake-v0", "--agent", f"hf:{tmp_path / 'model'}", "--episodes", "3", *sampling]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    seats = [episode["seats"]["player_0"] for episode in lines_of(tmp_path / "out" / "episodes.jsonl")]
    assert all(0 < seat["tokens_out"] <= 3 * seat["calls"] and seat["tokens_in"] > 0 for seat in seats)
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert metadata["parameters"] == sum(weight.numel() for weight in model.network.parameters())
    asked = json.loads((tmp_path / "out" / "config.json").read_text())["sampling"]
    assert (asked["temperature"], asked["format"], asked["prompt"]) == (1.0, "plain", {"instructions": False})


def test_an_agent_of_ones_own_module_plays(own_agents: None, capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluation(capsys, GUESS, "--agent", "module:halving_agents.Halver")
    assert found["environments"][GUESS]["success"]["value"] == pytest.approx(1 / 100), "50 is one number of 100"


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("module:halving_agents.Havler", "halving_agents has no 'Havler'. Did you mean 'Halver'?"),
        ("module:halving_agnets.Halver", "no module named 'halving_agnets'"),
        ("module:Halver", "the agent module needs a dotted path, got 'Halver'"),
        ("module:halving_agents.nobody", "must make a turngym.agents.Agent, got str."),
    ],
)
def test_a_wrong_module_is_explained(
    own_agents: None, agent: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", GUESS, "--agent", agent]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["textgame", "--agent", "random"], "no suite or environment named 'textgame'. Did you mean 'textgames'?"),
        (["turngym/KuhnPoker-v0", "--agent", "random"], "no suite or environment: take turngym/KuhnPokerSeat-v0"),
        (["turngym/Sokban-v0", "--agent", "random"], "Did you mean 'turngym/Sokoban-v0'?"),
        (["CartPole-v1", "--agent", "random"], "CartPole-v1 is not a text environment of turngym"),
        ([GUESS, "--agent", "rndom"], "no agent named 'rndom'. Did you mean 'random'?"),
        ([GUESS, "--agent", "scripted:"], "a scripted agent needs at least one action"),
        ([GUESS, "--agent", "random", "--option", "hihg=3"], "no option 'hihg'. Did you mean 'high'?"),
        ([GUESS, "--agent", "random", "--option", "high=0"], "high of turngym/GuessTheNumber-v0 must be"),
        ([GUESS, "--agent", "random", "--option", "high"], "--option takes KEY=VALUE"),
        ([GUESS, "--agent", "random", "--split", "tset"], "no split 'tset'. Did you mean 'test'?"),
        ([GUESS, "--agent", "random", "--backend", "proces"], "Did you mean 'process'?"),
        ([GUESS, "--agent", "random", "--format", "tga"], "no action format named 'tga'. Did you mean 'tag'?"),
        ([GUESS, "--agent", "random", "--episodes", "0"], "--episodes must be at least 1, got 0."),
        ([GUESS, "--agent", "random", "--episodes", "101"], "has 100 instances, fewer than the 101 asked for"),
        ([GUESS, "--agent", "random", "--num-envs", "0"], "--num-envs must be at least 1, got 0."),
        ([GUESS, "--agent", "random", "--temperature", "-1"], "--temperature must be 0 or more, got -1.0."),
        ([GUESS, "--agent", "random", "--top-p", "0"], "--top-p must be above 0"),
        ([GUESS, "--agent", "random", "--max-new-tokens", "0"], "--max-new-tokens must be at least 1"),
        ([GUESS, "--agent", "random", "--prompt", "histroy=3"], "has no option 'histroy'. Did you mean 'history'?"),
        (["textgames", "--agent", "random", "--option", "high=3"], "has its own options and split"),
        (["textgames", "--agent", "random", "--split", "dev"], "has its own options and split"),
    ],
)
def test_a_wrong_word_is_explained(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", *words]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and message in shown and shown.count("\n") == 1


def test_the_ruleset_hash_follows_the_behaviour(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ruleset_hash(GUESS, {})
    assert ruleset_hash(GUESS, {}) == before != ruleset_hash(GUESS, {"step_reward": -0.1})
    original = GuessTheNumber.apply_action

    def in_capitals(self: GuessTheNumber, action: str) -> Any:
        outcome = original(self, action)
        return type(outcome)(outcome.observation.upper(), outcome.reward, outcome.terminated, outcome.success)

    monkeypatch.setattr(GuessTheNumber, "apply_action", in_capitals)
    assert ruleset_hash(GUESS, {}) != before


def test_a_single_instance_is_played_as_often_as_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--agent", "random", "--episodes", "3", "--out", str(tmp_path / "run")]
    assert main(["eval", "turngym/TowerOfHanoi-v0", *words, "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["repeats"] == 3
    assert "turngym/TowerOfHanoi-v0 has a single instance, which is played 3 times." in shown.err
    assert len(lines_of(tmp_path / "run" / "episodes.jsonl")) == 3
    assert main(["verify", str(tmp_path / "run")]) == 0
    words = ["--option", "start=random", "--option", "discs=2", "--agent", "random", "--episodes", "30"]
    assert main(["eval", "turngym/TowerOfHanoi-v0", *words]) == 2, "8 instances are too few for 30 tasks"
