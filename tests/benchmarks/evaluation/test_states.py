"""Agents that continue recorded episodes: the same state, the same history, and comparisons from there."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from chat_servers import ChatServerForTests, Reply, chat_server
from small import agent_of, small_model

from turngym.__main__ import main
from turngym.agents.core import Agent, Decision, Request
from turngym.agents.models.completion import Completion
from turngym.benchmarks import compare, evaluate, recorded_states, verify_submission
from turngym.benchmarks.leaderboard.entries import LeftOut, read_entry
from turngym.envs.registration import specs
from turngym.errors import ConfigError, MissingExtra, TurngymError

GAME = "turngym/GuessTheNumber-v0"


def rows(folder: Path, name: str = "episodes.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text("utf8").splitlines()]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    evaluate(GAME, "scripted:50,25", episodes=6, options={"high": 60, "max_turns": 6}, out=tmp_path / "base")
    return tmp_path / "base"


def continues_equally(env_id: str, folder: Path) -> None:
    """The random agent draws by episode and turn: from any state it continues as it did."""
    try:
        gymnasium.make(env_id).close()
    except MissingExtra as error:
        pytest.skip(str(error))
    evaluate(env_id, "random", episodes=1, out=folder / "whole")
    evaluate(recorded_states(f"{folder / 'whole'}@50%"), "random", out=folder / "half")
    [whole], [half] = rows(folder / "whole"), rows(folder / "half")
    assert half.pop("state")["turn"] == whole["length"] // 2
    paid = {"seats": 0, "started": 0, "tokens_in": 0, "tokens_out": 0}
    assert {**half, **paid} == {**whole, **paid}


CORE = [
    f"turngym/{name}-v0"
    for name in ("Sokoban", "GuessTheNumber", "FrozenLake", "BernoulliBandit", "Game2048Easy", "HouseholdEasy")
]


@pytest.mark.parametrize("env_id", CORE)
def test_an_environment_continues_as_it_was_recorded(env_id: str, tmp_path: Path) -> None:
    continues_equally(env_id, tmp_path)


@pytest.mark.integration
@pytest.mark.parametrize("env_id", sorted(set(specs()) - set(CORE)))
def test_every_other_id_continues_as_it_was_recorded(env_id: str, tmp_path: Path) -> None:
    continues_equally(env_id, tmp_path)


@pytest.mark.parametrize("settings", [{}, {"style": "react"}, {"prompt": {"history": 2}}], ids=str)
def test_a_served_model_is_asked_as_if_it_had_played_the_turns_before(settings: dict[str, Any], tmp_path: Path) -> None:
    with chat_server(lambda body: Reply(f"Hm {len(str(body))}: <action>1</action>")) as server:
        agent = f"openai:model@{server.url}"
        evaluate(GAME, agent, episodes=2, out=tmp_path / "whole", **settings)
        whole = asked(server)
        evaluate(recorded_states(f"{tmp_path / 'whole'}@2"), agent, out=tmp_path / "half", **settings)
    half = asked(server)
    assert 0 < len(half) < len(whole) and half <= whole
    played, continued = rows(tmp_path / "whole"), rows(tmp_path / "half")
    assert [row["actions"] for row in continued] == [row["actions"] for row in played]
    assert [row["seats"]["player_0"]["calls"] for row in continued] == [row["length"] - 2 for row in played]


def asked(server: ChatServerForTests) -> set[str]:
    """Return the requests of completions since the last call, the check of the server aside."""
    found = {json.dumps(body, sort_keys=True) for body in server.requests if len(body["messages"]) > 1}
    server.requests.clear()
    return found


@pytest.mark.parametrize("mode", ["window", "conversation"])
def test_a_local_model_reads_the_turns_of_another_agent(mode: str, tmp_path: Path) -> None:
    """Those of the expert, which wrote no completion, are written in the model's format."""
    evaluate("turngym/Sokoban-v0", "expert", episodes=2, options={"view": "coordinates"}, out=tmp_path / "base")
    model = small_model()
    agent = agent_of(model, mode, history=3) if mode == "window" else agent_of(model, mode)
    prompts: list[str] = []
    complete = agent.complete

    def noted(requests: Sequence[Request], ids: Sequence[tuple[int, ...]]) -> Sequence[Completion]:
        prompts.extend(str(model.tokenizer.decode(list(each))) for each in ids)
        return complete(requests, ids)

    agent.complete = noted  # type: ignore[method-assign, assignment]
    evaluate(recorded_states(f"{tmp_path / 'base'}:0@2"), agent)
    turns = rows(tmp_path / "base", "transcripts.jsonl")[0]["turns"]
    said = [f"<action>{turn['action']}</action>" for turn in turns] if mode == "conversation" else ["", ""]
    for turn, words in zip(turns[:2], said, strict=False):
        assert turn["observation"] in prompts[0] and words in prompts[0] and turn["action"] in prompts[0]
    assert turns[2]["observation"] in prompts[0]


def test_agents_are_compared_from_equal_states(base: Path, tmp_path: Path) -> None:
    for agent in ("random", "expert"):
        evaluate(recorded_states(f"{base}@every"), agent, out=tmp_path / agent)
    found = compare(tmp_path / "random", tmp_path / "expert")
    [difference] = found.environments.values()
    count = sum(row["length"] for row in rows(base))
    assert difference.gained + difference.lost + difference.equal == count > difference.gained > 0
    assert difference.metrics["success"].blocks == len(rows(base)), "states of one task are one block"
    evaluate(recorded_states(f"{base}@1"), "random", out=tmp_path / "others")
    with pytest.raises(ConfigError, match=f"{count} and 6 tasks, 6 of them the same"):
        compare(tmp_path / "random", tmp_path / "others")


def test_a_killed_run_is_resumed_from_the_same_states_alone(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluate(recorded_states(f"{base}@1"), "random", out=out)
    before = rows(out)
    (out / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in before[:3]), "utf8")
    assert evaluate(recorded_states(f"{base}@1"), "random", out=out, resume=True).mean.count == 6
    assert [row["transcript_sha256"] for row in rows(out)] == [row["transcript_sha256"] for row in before]
    with pytest.raises(ConfigError, match=r"has environments\.0\.states"):
        evaluate(recorded_states(f"{base}@2"), "random", out=out, resume=True)


def test_no_leaderboard_takes_turns_that_others_played(base: Path, tmp_path: Path) -> None:
    evaluate(recorded_states(f"{base}@1"), "random", out=tmp_path / "out")
    [finding] = [each for each in verify_submission(tmp_path / "out", replay=0).findings if each.name == "suite"]
    assert "continue recorded ones" in finding.message
    assert isinstance(read_entry(tmp_path / "out"), LeftOut)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observation": "another"}, "differs at turn 2: from character 0 on it shows .* recorded was 'another'"),
        ({"reward": 0.5}, "earns other rewards than recorded in its first 3 turns"),
    ],
)
def test_a_replay_that_differs_is_an_error_with_its_turn(base: Path, change: dict[str, Any], message: str) -> None:
    told = rows(base, "transcripts.jsonl")
    for each in told:
        each["turns"][1].update(change)
    (base / "transcripts.jsonl").write_text("".join(json.dumps(each) + "\n" for each in told), "utf8")
    with pytest.raises(TurngymError, match=message):
        evaluate(recorded_states(f"{base}@3"), "random")


def test_an_agent_that_cannot_take_over_turns_says_so_before_anything_is_written(base: Path, tmp_path: Path) -> None:
    class Silent(Agent):
        def act(self, requests: Sequence[Request]) -> list[Decision]:
            return [Decision("1") for _ in requests]

    with pytest.raises(ConfigError, match=r"Silent cannot continue recorded episodes: define follow\(\)"):
        evaluate(recorded_states(f"{base}@1"), Silent(), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("", "names no recorded state"),
        ("@x", r"names no recorded state.*runs/base:3@5\.$"),
        (":0@evry", "names no recorded state.* Did you mean 'every'"),
        ("@100%", "at most 99%"),
        (":7@1", "has no episode 7: its episodes are 0 to 5"),
        ("@99", "no episode .* after turn 99: name an earlier turn"),
    ],
)
def test_what_names_no_state_is_refused(end: str, message: str, base: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        recorded_states(f"{base}{end}")


def test_a_folder_makes_only_what_is_registered(base: Path) -> None:
    config = json.loads((base / "config.json").read_text("utf8"))
    config["environments"][0]["env"] = "evil.py:Env"
    (base / "config.json").write_text(json.dumps(config), "utf8")
    with pytest.raises(ConfigError, match=r"cannot be continued: the environment 'evil\.py:Env' is not registered"):
        recorded_states(f"{base}@1")


def test_the_last_ten_turns_before_a_state_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(GAME, "scripted:50,25", episodes=1, options={"high": 60, "max_turns": 14}, out=tmp_path / "long")
    assert main(["play", "--from", f"{tmp_path / 'long'}:0@12", "--agent", "scripted:1"]) == 0
    shown = capsys.readouterr().out
    assert "2 earlier recorded turns not shown" in shown and shown.count(", recorded") == 10
    assert "turn 2, recorded" not in shown and "turn 12, recorded" in shown


def test_both_commands_continue(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--from", f"{base}@1", "--agent", "random", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suite"] == f"{GAME} from recorded states"
    assert main(["play", "--from", f"{base}:2@2", "--agent", "scripted:1,2,3"]) == 0
    shown = capsys.readouterr().out
    assert [word in shown for word in ("turn 1, recorded", "turn 2, recorded", "turn 3, recorded")] == [
        True,
        True,
        False,
    ]
    assert shown.index("turn 2, recorded") < shown.index("action> 25") < shown.index("turn 3")
    for words in (["eval", GAME, "--agent", "random"], ["play", GAME]):
        assert main([*words, "--from", f"{base}@1"]) == 2
    assert capsys.readouterr().err.count("in its folder: leave out the") == 2
    assert main(["play", "--from", f"{base}@1"]) == 2
    assert "names 6 states: name one" in capsys.readouterr().err
