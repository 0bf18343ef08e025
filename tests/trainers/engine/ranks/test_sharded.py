"""Two gloo ranks with a sharded model against one process with the whole of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rank_processes
import sharded_calls

pytestmark = pytest.mark.integration

SHORT = ("16 bits", "adapters on 16 bits", "float16 with critic")
SEVERAL = ("minibatches",)


@pytest.fixture(scope="module")
def called() -> dict[str, Any]:
    """What the ranks found, which is the same on both."""
    words = [str(Path(sharded_calls.__file__)), *sharded_calls.CALLS]
    ended = rank_processes.run(words, timeout=2400, TURNGYM_RANK_TIMEOUT="300")
    assert [each.status for each in ended] == [0, 0], ended
    found: list[dict[str, Any]] = [json.loads(each.output.splitlines()[-1]) for each in ended]
    return found[0]


@pytest.mark.parametrize(("kind", "bound"), [("float64", 1e-9), ("float32", 1e-5)])
def test_every_way_of_training_has_the_gradients_and_metrics_of_one_process(
    called: dict[str, Any], kind: str, bound: float
) -> None:
    assert called[kind].keys() == set(sharded_calls.COMPARED[kind])
    for name, found in called[kind].items():
        assert found["gradients"] < bound, name
        assert found["names"] and found["metric"][1] < 10 * bound, (name, found["metric"])
    assert sum(found["norm"] > 1e-3 for found in called[kind].values()) > len(sharded_calls.COMPARED[kind]) - 4


def test_every_layout_and_setting_has_the_same_gradients(called: dict[str, Any]) -> None:
    for name, found in called["ways"].items():
        if name not in (*SHORT, *SEVERAL):
            assert found["gradients"] < 1e-5 and found["weights"] < 1e-4, (name, found)
            assert found["norm"] > 1e-5 and found["published"] < 1e-4, (name, found)


def test_weights_after_several_updates(called: dict[str, Any]) -> None:
    for name in ("minibatches", "adapters", "adapters and critic"):
        assert called["ways"][name]["weights"] < 1e-3, name


def test_16_bits_differ_by_rounding_alone(called: dict[str, Any]) -> None:
    for name in SHORT:
        found = called["ways"][name]
        assert found["gradients"] < 0.05 and found["published"] < 0.1, (name, found)


def test_a_checkpoint_goes_from_two_ranks_to_one_and_back(called: dict[str, Any]) -> None:
    """Weights and moments are equal to the bit; what follows differs between one and two ranks by rounding."""
    for name, found in called["resumes"].items():
        assert found["extra"] == [[1, {"turns_total": 3}]] * 2
        assert found["loaded"] == [0.0, 0.0] and found["back"] == 0.0, name
        assert found["damaged"].startswith("CheckpointError: the checkpoint"), found["damaged"]
        on_two, on_one = found["continued"]
        assert on_two == 0.0 and on_one < (0.05 if name.startswith("16 bits") else 1e-5), (name, found)


def test_ranks_write_pieces_and_nothing_pickled(called: dict[str, Any]) -> None:
    for name, found in called["resumes"].items():
        files = [file for file in found["files"] if "/" in file or "." in file]
        assert all(file.endswith((".safetensors", "state.json")) for file in files), files
        assert sum(file.startswith("policy/") for file in files) == 2, (name, files)


def test_what_goes_wrong_without_a_word_is_done_in_another_way(called: dict[str, Any]) -> None:
    found = called["traps"]
    assert found["autograd.grad returns None"] > 20 and found["gradients of a number are whole"]
    assert found["earlier gradients are kept"]
    assert found["backward pass of a loss that depends on nothing"]
    assert found["addresses of all tensors"] == [0] and found["names in a checkpoint"]
    assert "does not support deepcopy" in found["deepcopy"]
    assert "mixed torch.Tensor and DTensor" in found["below the root"] and found["inside of the root"]
    assert not found["layers that sample while others are checkpointed"]
    assert found["moved"] and found["published"] == pytest.approx(0.0, abs=1e-5)
    assert found["only parts are kept between passes"]
    assert found["numbers of the policy that samples, in an update"] == 0, "their memory is free during an update"


def test_a_loss_that_is_not_finite_on_one_rank_ends_the_update_on_all(called: dict[str, Any]) -> None:
    assert called["not finite"].startswith("DivergenceError: the loss is not finite")


def test_a_rank_that_cannot_write_leaves_no_half_checkpoint(called: dict[str, Any]) -> None:
    found = called["no room"]
    assert found["said"].startswith("OSError: [Errno 27]"), found["said"]
    assert found["left"] == ["000001"] and found["afterwards"] == ["000001", "000002"]


def test_what_was_trained_is_kept_when_a_rank_fails(called: dict[str, Any]) -> None:
    """All ranks know of the error, so that each writes its part of a last checkpoint."""
    found = called["emergency"]
    assert found["said"].startswith("RunStopped") and "a disk of the second rank" in found["said"]
    assert found["checkpoints"] == ["000001"] and found["iterations"] == [0, 1, 2]


def test_two_nodes_of_two_ranks() -> None:
    """The weights are divided within a node, and the nodes are copies of each other."""
    words = [str(Path(sharded_calls.__file__)), *sharded_calls.ON_NODES]
    ended = rank_processes.run(words, size=4, timeout=2400, TURNGYM_RANK_TIMEOUT="300", LOCAL_WORLD_SIZE="2")
    assert [each.status for each in ended] == [0] * 4, ended
    found = json.loads(ended[0].output.splitlines()[-1])["nodes"]
    assert found["placements"] == ["(Replicate(), Shard(dim=0))", "(Shard(dim=0),)"]
    for name in ("update", "one copy"):
        assert found[name]["gradients"] < 1e-5 and found[name]["weights"] < 1e-3
    assert found["probes"]["gradients"] < 1e-5
    assert found["resumed"]["loaded"] == [0.0, 0.0] and found["resumed"]["back"] == 0.0


def test_an_error_in_a_pass_ends_its_rank_at_once_and_so_the_others() -> None:
    words = [str(Path(sharded_calls.__file__)), *sharded_calls.FAILING]
    ended = rank_processes.run(words, timeout=300, TURNGYM_RANK_TIMEOUT="280")
    assert all(each.status for each in ended)
    assert "MemoryError: no memory is left on this rank" in ended[1].errors
    assert "RankLost" not in ended[1].errors
