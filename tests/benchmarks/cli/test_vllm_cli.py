"""``turngym eval --agent vllm:PATH``, from the command line to the folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import small_model

from turngym.__main__ import main
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

pytestmark = pytest.mark.integration
pytest.importorskip("vllm", reason="vllm is in .venvs/vllm only: run make test-integration")

from turngym.agents.models.vllm.sampler import end_vllm  # noqa: E402

LAKE = SuiteEntry("turngym/FrozenLake-v0", {"max_turns": 4}, episodes=3)
NUMBER = SuiteEntry("turngym/GuessTheNumber-v0", {"max_turns": 7}, episodes=3)
if "two-games" not in SUITES:
    SUITES.register("two-games")(Suite("two-games", 1, "Short episodes.", (LAKE, NUMBER)))


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    end_vllm()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    small_model(hidden=64).save(path)
    return path


def words_for(backend: str, folder: Path, out: Path, *more: str) -> list[str]:
    words = ["eval", "two-games", "--agent", f"{backend}:{folder}", "--out", str(out)]
    return [*words, "--prompt", "instructions=false", "--max-new-tokens", "8", *more]


def split_logprobs(path: Path) -> tuple[list[Any], list[float]]:
    """The episodes without log-probabilities, and these, which each backend rounds in its own way."""
    episodes = [json.loads(line) for line in path.read_text("utf8").splitlines()]
    turns = [turn for episode in episodes for turn in episode["turns"]]
    return episodes, [logprob for turn in turns for logprob in turn.pop("completion_logprobs")]


def test_a_suite_is_played_like_by_transformers(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Greedy, so both backends write the same; what is printed is JSON and nothing else."""
    settings = ["--server", "kv_cache_gib=0.2", "--server", "dtype=float32"]
    assert main([*words_for("vllm", folder, tmp_path / "vllm", *settings), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["complete"] and found["usage"]["tokens_out"] > 0
    assert main(words_for("hf", folder, tmp_path / "hf")) == 0
    ours, theirs = (split_logprobs(tmp_path / name / "transcripts.jsonl") for name in ("vllm", "hf"))
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], abs=1e-4) and len(ours[1]) == found["usage"]["tokens_out"]
    config = json.loads((tmp_path / "vllm" / "config.json").read_text("utf8"))
    assert config["sampling"]["server"] == {"kv_cache_gib": 0.2, "dtype": "float32"}
