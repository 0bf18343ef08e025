"""The page "write your own algorithm": its file is loaded, tested and trained with, and wrong names are explained."""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import algorithm_batches as properties
import pytest
import test_algorithm_properties as held
import torch

from turngym.__main__ import main
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.benchmarks.cli.train import default_run_dir, parse_train
from turngym.errors import ConfigError, UnknownName
from turngym.trainers.algorithms import build, parts
from turngym.trainers.algorithms.base.naming import locate
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

PAGE = Path(__file__).parents[3] / "trainers" / "algorithms" / "README.md"
TINY = TrainConfig(
    env_options={"view": "coordinates", "max_turns": 4, "max_moves": 2},
    iterations=2,
    max_seconds=0,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=10, epochs=1),
    rollout=RolloutConfig(groups=2, group_size=3, max_new_tokens=3),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """The first file of code on the page."""
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf8"), re.DOTALL | re.MULTILINE)
    assert len(code.splitlines()) <= 30
    path = tmp_path / "rank.py"
    path.write_text(code, "utf8")
    yield path
    for name in [name for name, module in sys.modules.items() if getattr(module, "__file__", "") == str(path)]:
        del sys.modules[name]


def test_the_file_of_the_page_trains_two_iterations(own: Path, tmp_path: Path) -> None:
    config = replace(TINY, algorithm=f"{own}:Rank", algorithm_options={"Rank": {"power": 2.0}})
    assert train(config, tmp_path / "run").finished
    records = RunFolder(tmp_path / "run").metrics()
    assert [record["train/updates"] for record in records] == [4, 8]
    assert all("credit/groups_shrunk_to_one" in record and "loss/clip_fraction" in record for record in records)
    chosen = replace(config, rollout=replace(config.rollout, sampler="transformers"))  # recorded for ``auto``
    assert RunFolder(tmp_path / "run").config() == chosen


def test_its_settings_are_options_of_the_command_line(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--algorithm", f"{own}:Rank+epo", "--Rank.power", "2", "--Rank.clip-high", "0.28", "--epo.alpha", "0.3"]
    config, folder, _ = parse_train(words)
    quickstart = {"dual_clip": 3.0, "entropy_coef": 0.01, "invalid_penalty": 0.1}
    assert config.algorithm_options == {"Rank": {"power": 2.0, "clip_high": 0.28, **quickstart}, "epo": {"alpha": 0.3}}
    assert folder == default_run_dir(config) == Path("runs/frozenlake-rank+epo-seed0")
    assert main(["train", "--algorithm", f"{own}:Rank", "--help-all"]) == 0
    assert "Above 1, the extremes of the ranking" in " ".join(capsys.readouterr().out.replace("│", "").split())


def test_every_command_of_the_page_is_understood(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    commands = re.findall(r"^    turngym train (.*)$", PAGE.read_text("utf8"), re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        assert build(parse_train(command.split())[0].algorithm)


def test_it_computes_what_it_says(own: Path) -> None:
    table = turn_table(properties.episodes(count=4, turns=1, tokens=1))
    table = replace(table, reward=torch.tensor([0.3, 5.0, 0.2, 0.3]).double())
    found = build(f"{own}:Rank").credit(table).advantages
    assert found.tolist() == pytest.approx([0, 1, -1, 0])


TESTS = [
    name
    for name, test in vars(held).items()
    if name.startswith("test_") and list(inspect.signature(test).parameters) == ["variant"]
]


@pytest.mark.parametrize("name", TESTS)
def test_it_has_the_properties_of_every_method(name: str, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(properties.VARIANTS, "rank", (f"{own}:Rank", {}))
    getattr(held, name)("rank")


def test_the_properties_are_many() -> None:
    """Guards the test above: a change of names must not leave it empty."""
    assert len(TESTS) > 10


def test_a_module_is_named_like_a_file() -> None:
    key, method = locate("turngym.trainers.algorithms.grpo:GRPO")
    assert (key, method) == ("GRPO", locate("grpo")[1])
    assert locate("turngym.trainers.algorithms.grpo:grpo") == ("grpo", method), "a name that the module registers"
    assert [part for part, _ in parts("turngym.trainers.algorithms.epo:EPO")] == ["ppo", "EPO"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{own}:Ranks", r"rank\.py has no 'Ranks'. Did you mean 'Rank'\?"),
        ("{own}x.py:Rank", "there is no file "),
        (
            "no_such_module_of_mine:Rank",
            "no module named 'no_such_module_of_mine', which '",
        ),
        ("json:Rank", "json has no 'Rank'. It has no class of turngym.trainers.core.algorithm.Algorithm at all."),
    ],
)
def test_what_is_not_there_is_named_with_the_way_out(name: str, message: str, own: Path) -> None:
    with pytest.raises(UnknownName, match=message):
        build(name.format(own=own))


def test_a_class_that_is_no_method_is_refused(own: Path) -> None:
    for name in ("RankConfig", "OutcomeMethod"):
        with pytest.raises(ConfigError, match=f"{name} of .* is .*, expected a training method"):
            build(f"{own}:{name}")
    own.with_name("bare.py").write_text(own.read_text("utf8").replace("    Config = RankConfig\n", ""), "utf8")
    with pytest.raises(ConfigError, match=r"Rank of .*bare\.py has no Config: name the frozen dataclass"):
        build(f"{own.with_name('bare.py')}:Rank")


def test_the_checkpoint_of_an_own_method_goes_on(own: Path, tmp_path: Path) -> None:
    config = replace(TINY, algorithm=f"{own}:Rank", iterations=1)
    train(config, tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "config.json").read_text("utf8"))
    assert stored["algorithm"] == f"{own}:Rank"
    assert train(config, tmp_path / "run", resume=True).finished
