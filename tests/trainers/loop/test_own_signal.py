"""The file of the page "A signal of your own": a column goes from its environment through the credit into its loss."""

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from small import small_model

from turngym.__main__ import main
from turngym.agents.episodes.groups import play_groups
from turngym.agents.episodes.rollout import rollout
from turngym.agents.players import AgentSettings
from turngym.agents.players.scripted import ScriptedAgent
from turngym.agents.trajectory import EpisodeSpec
from turngym.envs.vector import make_vec
from turngym.trainers.algorithms import build
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.engine.prepared import prepare

torch.set_num_threads(1)
PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "signal.md").read_text("utf8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (code,) = re.findall(r'```python title="dial.py"\n(.*?)```', PAGE, re.DOTALL)
    assert len(code.splitlines()) <= 40
    (tmp_path / "dial.py").write_text(code, "utf8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_of_the_page_trains_with_the_signal(folder: Path) -> None:
    (command,) = re.findall(r"^turngym (train (?:.*\\\n)*.*)$", PAGE, re.MULTILINE)
    assert main(shlex.split(command.replace("\\\n", " "))) == 0
    lines = (folder / "runs" / "nearer" / "metrics.jsonl").read_text("utf8").splitlines()
    terms = [json.loads(line)["loss/nearer"] for line in lines]
    assert len(terms) == 2 and all(term > 0 for term in terms), "log-probabilities are negative"


def test_the_environment_gives_the_column_and_the_credit_hands_it_on(folder: Path) -> None:
    vector = make_vec(f"{folder}/dial.py:Dial", 1, autoreset_mode="disabled")
    try:
        (episode,) = rollout(vector, ScriptedAgent(["left", "right", "nonsense"]), [EpisodeSpec(0, 3)])
    finally:
        vector.close()
    shown = [int(re.findall(r"-?\d+", text)[0]) for text in [turn.observation for turn in episode.turns][1:]]
    assert [turn.columns for turn in episode.turns[:-1]] == [{"distance": abs(number)} for number in shown]
    table = turn_table([episode])
    assert table.numbers("turn", "distance").tolist()[:3] == [abs(number) for number in shown[:3]]


def test_the_loss_of_a_micro_batch_reads_it(folder: Path) -> None:
    method, model = build(f"{folder}/dial.py:Nearer", {"Nearer": {"kl_coef": 0.0}}), small_model()
    vector = make_vec(f"{folder}/dial.py:Dial", 4, autoreset_mode="disabled", max_turns=3)
    try:
        episodes = play_groups(vector, model, groups=2, group_size=2, settings=AgentSettings(max_new_tokens=8))
    finally:
        vector.close()
    batch = prepare(episodes, model, method)
    found = sum(float(method.loss(part).terms["nearer"].total(part).detach()) for part in batch.micro_batches())
    nearness = 1 / (1 + batch.table.to_tokens(batch.table.numbers("turn", "distance")))
    expected = float((-0.1 * nearness * batch.table.token_logprob).mean())
    assert found == pytest.approx(expected, rel=1e-4)
