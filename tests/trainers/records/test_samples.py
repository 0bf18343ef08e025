"""Sample trajectories of a run: every token with its text, its log-probability and its advantage."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_training import SMALL

from turngym.agents.models.loading import load_model
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.loop.job import train
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.records.samples import advantages_by_turn, sample_of


def spoken(*tokens: int, prompt: tuple[int, ...] = (1, 2), **fields: Any) -> Turn:
    return Turn("seen", "", "go", "said", prompt, tokens, tuple(-0.5 * token for token in tokens), **fields)


def decode(ids: Any) -> str:
    return " ".join(f"<{each}>" for each in ids)


def test_tokens_stand_beside_their_log_probabilities_and_advantages() -> None:
    sample = sample_of(Trajectory(EpisodeSpec(0, 7), turns=[spoken(3, 4)]), decode, [[0.123456789, -2.0]])
    (turn,) = sample["turns"]
    assert turn["tokens"] == ["<3>", "<4>"] and turn["logprobs"] == [-1.5, -2.0]
    assert turn["advantages"] == [0.123457, -2.0] and turn["prompt"] == "<1> <2>"
    assert "prompt_continues" not in turn and "agent" not in sample


def test_a_conversation_is_written_once() -> None:
    first, second = spoken(3, prompt=(1, 2)), spoken(6, prompt=(1, 2, 3, 5))
    turns = sample_of(Trajectory(EpisodeSpec(0, 7), turns=[first, second]), decode)["turns"]
    assert [turn["prompt"] for turn in turns] == ["<1> <2>", "<5>"]
    assert turns[1]["prompt_continues"] is True
    apart = sample_of(Trajectory(EpisodeSpec(0, 7), turns=[first, spoken(6, prompt=(1, 9))]), decode)["turns"]
    assert apart[1]["prompt"] == "<1> <9>" and "prompt_continues" not in apart[1]


def test_without_a_model_there_are_no_prompts_and_tokens() -> None:
    sample = sample_of(Trajectory(EpisodeSpec(0, 7), turns=[spoken(3), Turn("seen", "", "go")]))
    assert all(not {"prompt", "tokens", "advantages"} & turn.keys() for turn in sample["turns"])


def test_a_seat_of_a_game_says_which_one_it_is() -> None:
    seat = Trajectory(EpisodeSpec(0, 7), turns=[spoken(3, agent="player_2")], role="seer", policy="learner")
    assert sample_of(seat).items() >= {"agent": "player_2", "role": "seer"}.items()
    never_asked = Trajectory(EpisodeSpec(0, 7), role="seer", policy="learner")
    assert sample_of(never_asked)["agent"] == ""


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 4), max_size=4)), max_size=6))
def test_advantages_are_cut_as_the_turn_table_lays_tokens_out(shape: list[tuple[bool, list[int]]]) -> None:
    """Each token gets the number that the table has at its place, whatever was left out of the table."""
    trajectories = [
        Trajectory(EpisodeSpec(k, 0), turns=[spoken(*range(count)) for count in turns], fault="broke" if bad else "")
        for k, (bad, turns) in enumerate(shape)
    ]
    table = turn_table(trajectories)
    flat = torch.arange(len(table.token_turn), dtype=torch.float64).tolist()
    found = advantages_by_turn(trajectories, flat)
    assert [value for mine in found if mine for turn in mine for value in turn] == flat
    for trajectory, mine in zip(trajectories, found, strict=True):
        if mine is not None:
            assert not trajectory.fault
            assert [len(turn) for turn in mine] == [len(turn.logprobs) for turn in trajectory.turns]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "sampled"
    assert train(SMALL, folder).finished
    return folder


def test_a_run_writes_tokens_everywhere_and_advantages_where_it_trained(run: Path) -> None:
    for name, records in RunFolder(run).samples().items():
        for turn in (turn for record in records for turn in record["turns"]):
            assert len(turn["tokens"]) == len(turn["logprobs"]) > 0, name
            assert ("advantages" in turn) == name.startswith("iteration"), name
            assert len(turn.get("advantages", turn["tokens"])) == len(turn["tokens"])
            assert turn["observation"] in turn["prompt"], name


def test_tokens_of_a_real_tokenizer_join_to_the_text(run: Path) -> None:
    model = load_model(str(run / "model"))
    said = "<action>up</action><|end|>"
    ids = tuple(model.tokenizer.encode(said, add_special_tokens=False))
    turn = Turn("seen", "", "up", "<action>up</action>", (1,), ids, (0.0,) * len(ids))
    (record,) = sample_of(Trajectory(EpisodeSpec(0, 0), turns=[turn]), model.text_of)["turns"]
    assert "".join(record["tokens"]) == said and len(record["tokens"]) == len(ids) > 1


def test_samples_stay_small(run: Path) -> None:
    assert 0 < sum(file.stat().st_size for file in (run / "samples").glob("*.jsonl")) < 200_000
