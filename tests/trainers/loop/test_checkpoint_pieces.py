"""Parts of checkpoints in several files, as ranks write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from turngym.agents.models.checkpoint_tensors import files_of, is_checkpoint, read_into, read_tensors, stored_shapes
from turngym.agents.models.size import parameter_count
from turngym.errors import CheckpointError, ConfigError
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.ranks import SINGLE
from turngym.trainers.loop.checkpoints.pieces import read_divided
from turngym.trainers.loop.setup import require_packages, require_ranks
from turngym.trainers.settings.config import TrainConfig


@pytest.fixture
def whole() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "matrix": torch.randn(5, 3, generator=generator),
        "vector": torch.randn(1, generator=generator).bfloat16(),
        "step": torch.tensor(7.0),
    }


@pytest.fixture
def folder(tmp_path: Path, whole: dict[str, Tensor]) -> Path:
    """A checkpoint of two ranks: 3 rows of the matrix and the rest on one, 2 rows and nothing else on the other."""
    target = tmp_path / "000001" / "policy"
    target.mkdir(parents=True)
    for number, (rows, names) in enumerate(((slice(0, 3), ("vector", "step")), (slice(3, 5), ()))):
        pieces = {"matrix": whole["matrix"][rows].contiguous(), **{name: whole[name] for name in names}}
        offsets = {name: {"saved_offsets": [0] * each.ndim} for name, each in pieces.items()}
        offsets["matrix"]["saved_offsets"][0] = rows.start
        header = {"DCP_SHARDING_INFO": json.dumps(offsets), "format": "pt"}
        save_file(pieces, target / f"shard-0000{number + 1}-model-00001-of-00001.safetensors", header)
    return tmp_path / "000001"


def test_pieces_are_put_together(folder: Path, whole: dict[str, Tensor]) -> None:
    assert is_checkpoint(folder) and len(files_of(folder, "policy")) == 2
    assert stored_shapes(folder, "policy") == {name: tuple(each.shape) for name, each in whole.items()}
    found = read_tensors(folder, "policy")
    assert found.keys() == whole.keys()
    for name, each in whole.items():
        assert found[name].dtype == each.dtype and torch.equal(found[name], each), name
    assert parameter_count(str(folder)) == sum(each.numel() for each in whole.values())


def test_one_file_is_read_as_before(tmp_path: Path, whole: dict[str, Tensor]) -> None:
    save_file(whole, tmp_path / "policy.safetensors")
    assert is_checkpoint(tmp_path)
    assert stored_shapes(tmp_path, "policy") == {name: tuple(each.shape) for name, each in whole.items()}
    target = {"matrix": torch.zeros(5, 3, dtype=torch.float64)}
    read_into(tmp_path, "policy", target)
    assert torch.equal(target["matrix"], whole["matrix"].double())
    assert not is_checkpoint(tmp_path / "nothing")


def test_pieces_of_another_model_are_refused(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="belongs to another model"):
        read_divided(folder, "policy", {"matrix": torch.zeros(4, 3)})


def test_a_damaged_piece_is_no_silent_gap(folder: Path) -> None:
    file = files_of(folder, "policy")[1]
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(SafetensorError):
        read_tensors(folder, "policy")


def test_a_missing_piece_is_no_silent_gap(folder: Path) -> None:
    files_of(folder, "policy")[0].unlink()
    with pytest.raises(ValueError, match="lacks pieces of matrix"):
        read_tensors(folder, "policy")


def test_settings_that_sharding_excludes() -> None:
    with pytest.raises(ConfigError, match=r"leave out --update\.offload"):
        UpdateConfig(sharding="full", offload=True)
    with pytest.raises(ConfigError, match=r"leave out --update\.optimizer adamw_8bit"):
        UpdateConfig(sharding="full", optimizer="adamw_8bit")
    with pytest.raises(ConfigError, match=r"shard_group 2 shards nothing: .* pass --update\.sharding full"):
        UpdateConfig(shard_group=2)
    with pytest.raises(ConfigError, match=r"shard_group 1 shards nothing: .* pass --update\.sharding none"):
        UpdateConfig(sharding="full", shard_group=1)
    config = TrainConfig(update=UpdateConfig(sharding="full", shard_group=4))
    with pytest.raises(ConfigError, match=r"6 ranks cannot be divided into groups of 4: pass a divisor of 6"):
        require_ranks(config, type(SINGLE)(size=6))
    with pytest.raises(ConfigError, match="sharding must be one of 'none', 'full'"):
        UpdateConfig(sharding="half")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="nf4 cannot be divided over ranks"):
        require_packages(TrainConfig(quantize="nf4", lora_rank=4, update=UpdateConfig(sharding="full")))
