"""Questions and passages as Hugging Face's package reads them: saved to disk, or as Parquet files."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.search.env import SearchQA
from turngym.errors import ConfigError, MissingExtra

needs_datasets = pytest.mark.skipif(
    importlib.util.find_spec("datasets") is None, reason="the package datasets is missing (make test-integration)"
)
ROWS: dict[str, list[Any]] = {
    "id": ["1", "2", "3"],
    "question": ["Where is tea from?", "Who rules Beijing?", "Is tea green?"],
    "golden_answers": [["China", "the Far East"], ["nobody"], ["yes"]],
    "supporting_ids": [["w1"], None, ["w1"]],
}
PASSAGES = {"id": ["w1", "w2"], "title": ["Tea", "China"], "text": ["Tea comes from China.", "Its capital is Beijing."]}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return datasets


def save(library: Any, folder: Path, rows: Mapping[str, list[Any]] = ROWS) -> Path:
    """Save a set with three splits, of which only the last has an own question."""
    made = library.Dataset.from_dict(dict(rows))
    library.DatasetDict({"train": made, "validation": made.select([0]), "test": made}).save_to_disk(str(folder))
    return folder


def save_corpus(library: Any, folder: Path) -> Path:
    """Save passages, without splits."""
    library.Dataset.from_dict(PASSAGES).save_to_disk(str(folder))
    return folder


@needs_datasets
@pytest.mark.integration
def test_a_saved_set_and_corpus_are_played(library: Any, tmp_path: Path) -> None:
    name, corpus = f"hf:{save(library, tmp_path / 'qa')}", f"hf:{save_corpus(library, tmp_path / 'corpus')}"
    env = SearchQA(name, corpus=corpus, split="test", step_reward=0.6)
    assert env.tasks() == ("0", "1", "2")
    assert env.reset(options={"task": 0})[0] == "Question: Where is tea from?"
    observation, reward, *_ = env.step(env.expert_action())
    assert "Tea comes from China" in observation and reward > 0.5
    assert env.step("<answer>far east</answer>")[1] == 1.0
    assert len(SearchQA(name, corpus=corpus, split="dev").tasks()) == 1


@needs_datasets
@pytest.mark.integration
def test_a_folder_of_parquet_files_is_read(library: Any, tmp_path: Path) -> None:
    folder = tmp_path / "parquet"
    folder.mkdir()
    for split in ("train", "test"):
        library.Dataset.from_dict(ROWS).to_parquet(str(folder / f"{split}.parquet"))
    env = SearchQA(f"hf:{folder}", corpus=f"hf:{save_corpus(library, tmp_path / 'corpus')}", split="test")
    env.reset(options={"task": 2})
    assert env.step("<answer>Yes.</answer>")[1] == 1.0
    with pytest.raises(ConfigError, match="has no split 'dev'; it has: train, test"):
        SearchQA(f"hf:{folder}", split="dev")


@needs_datasets
@pytest.mark.integration
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("answer", ["China", "nobody", "yes"]),
        ("answer", [["China"], ["nobody"], ["yes"]]),
        ("answers", [{"text": [each], "answer_start": [0]} for each in ("China", "nobody", "yes")]),
        ("answer", [{"value": each, "aliases": ["other"]} for each in ("China", "nobody", "yes")]),
    ],
)
def test_answers_stand_in_several_forms(library: Any, tmp_path: Path, column: str, values: list[Any]) -> None:
    rows = {"id": ROWS["id"], "question": ROWS["question"], column: values}
    env = SearchQA(
        f"hf:{save(library, tmp_path / 'qa', rows)}", corpus=f"hf:{save_corpus(library, tmp_path / 'c')}", split="train"
    )
    env.reset(options={"task": 0})
    assert env.step("<answer>China</answer>")[1] == 1.0


@needs_datasets
@pytest.mark.integration
def test_what_is_no_set_is_named(library: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        SearchQA(f"hf:{tmp_path / 'nowhere'}")
    with pytest.raises(ConfigError, match="cannot be read"):
        SearchQA("hf:nobody/nothing")
    bare = save(library, tmp_path / "bare", {"id": ["1"], "question": ["x"]})
    with pytest.raises(ConfigError, match="need id, question, answers"):
        SearchQA(f"hf:{bare}")
    corpus = save(library, tmp_path / "odd", {"name": ["x"]})
    with pytest.raises(ConfigError, match="it needs id, title and text"):
        SearchQA(f"hf:{save(library, tmp_path / 'qa')}", corpus=f"hf:{corpus}")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"turngym\[datasets\]"):
        SearchQA("hf:anything")
