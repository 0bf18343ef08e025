"""The calculation of what a cluster needs, against numbers that were worked out by hand."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "benchmarks" / "studies" / "speed" / "cluster_table.py"


@pytest.fixture(scope="module")
def table() -> Any:
    spec = importlib.util.spec_from_file_location("cluster_table", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(table: Any) -> Any:
    """Two layers of width 8 with 2 heads of 4, 1 head of keys and values, feed-forward 16, 10 words."""
    return table.Model(hidden=8, intermediate=16, layers=2, heads=2, kv_heads=1, head=4, words=10)


def test_weights(table: Any, small: Any) -> None:
    # a layer: queries 8*8, output 8*8, keys and values 2 * 8*4, feed-forward 3 * 8*16
    assert small.inner == 2 * (64 + 64 + 64 + 384) == 1152
    assert small.weights == 1152 + 2 * 80
    assert table.Model(8, 16, 2, 2, 1, 4, 10, tied=True).weights == 1152 + 80
    # rank 3, a layer: queries and output 8 + 8, keys and values 8 + 4, three of 8 + 16
    assert small.adapters(3) == 3 * 2 * (2 * 16 + 2 * 12 + 3 * 24) == 768
    assert 7.6e9 < table.Model().weights < 7.65e9  # 7.62e9 on the page of Qwen2.5-7B, with biases and norms


def test_keys_and_values(table: Any, small: Any) -> None:
    assert small.kv_bytes == 2 * 2 * 2 * 1 * 4 == 32  # keys and values, 2 bytes, 2 layers, 1 head of 4
    assert table.Model().kv_bytes == 57_344


def test_state(table: Any) -> None:
    assert table.state_bytes(1000, 1000, 1) == {"weights": 2000, "masters": 4000, "gradients": 4000, "adam": 8000}
    assert table.state_bytes(1000, 10, 4) == {"weights": 500, "masters": 10, "gradients": 10, "adam": 20}


def test_activations(table: Any, small: Any) -> None:
    # inputs of layers 2 * 2*8 * 5; a layer 2 * 5 * (4*8 + 6*4 + 3*16) and its gradients; logits 8 * 7 * 10
    assert table.activation_bytes(small, 5, chunk=7) == 160 + 2 * 1040 + 560
    assert table.gathered_bytes(small, 1) == 0
    assert table.gathered_bytes(small, 2) == 2 * (2 * 576 + 80)


def test_operations_and_seconds(table: Any, small: Any) -> None:
    load = table.Load(episodes=3, turns=2, prompt=4, completion=1, peak=1000.0, mfu=0.5, prefill_mfu=0.25, decode=2.0)
    assert load.length == 10
    per_token = small.forward_operations(10)
    assert per_token == 2 * (1152 + 80) + 2 * 2 * 2 * 4 * 10 == 2784
    assert table.update_seconds(small, load) == pytest.approx(4 * 2784 * 30 / 500)
    assert table.rollout_seconds(small, load) == pytest.approx(6 / 2 + 24 * 2784 / 250)


def test_operations_are_those_of_the_measured_table(table: Any) -> None:
    """4.3 and 25.9 GFLOP a token, forward and backward, for Qwen3 of 0.6B and 4B at 2048 tokens."""
    small = table.Model(1024, 3072, 28, 16, 8, 128, 151_936, tied=True)
    large = table.Model(2560, 9728, 36, 32, 8, 128, 151_936, tied=True)
    found = [3 * model.forward_operations(2048) / 1e9 for model in (small, large)]
    assert found == pytest.approx([4.3, 25.9], abs=0.06)


def test_traffic(table: Any, small: Any) -> None:
    load = table.Load(episodes=4, turns=2, prompt=4, completion=1, micro_batch=16, link=100.0, network=10.0, node=8)
    assert table.hand_over_seconds(small, load, 1, 1312) == 0
    assert table.hand_over_seconds(small, load, 8, 1312) == 26.24
    assert table.hand_over_seconds(small, load, 16, 50) == 10
    # 8 GPUs, 4 learners: 80 tokens each, 5 micro-batches, weights twice in 2 bytes each, gradients once in 4
    assert table.sharding_seconds(small, load, 8, 4) == pytest.approx(0.75 * 1312 * (5 * 4 + 4) / 100)
    assert table.sharding_seconds(small, load, 8, 1) == 0


@pytest.mark.parametrize(
    ("update", "rollout", "gpus", "expected"),
    [(1, 1, 1, (1, 0)), (1, 3, 8, (2, 6)), (1, 1000, 8, (1, 7)), (1000, 1, 8, (7, 1)), (2, 1, 3, (2, 1))],
)
def test_division(table: Any, update: float, rollout: float, gpus: int, expected: tuple[int, int]) -> None:
    assert table.division(update, rollout, gpus) == expected


def test_a_row(table: Any) -> None:
    """One GPU works in turn; with eight, the slower half decides."""
    model, load = table.Model(), table.Load()
    one, eight = table.row(model, load, 1), table.row(model, load, 8)
    assert one["iteration_seconds"] == pytest.approx(one["update_seconds"] + one["rollout_seconds"], abs=0.2)
    slower = max(eight["update_seconds"], eight["rollout_seconds"])
    assert eight["iteration_seconds"] == pytest.approx(slower + eight["hand_over_seconds"], abs=0.1)
    assert not one["fits"] and eight["fits"] and table.row(model, load, 1, rank=32)["fits"]


def test_the_page_shows_what_the_script_prints(tmp_path: Path) -> None:
    words = [sys.executable, str(SCRIPT), "--out", str(tmp_path / "table.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in (ROOT / "docs" / "how-to" / "cluster.md").read_text("utf8")
    stored = ROOT / "benchmarks" / "results" / "cluster_table.json"
    assert json.loads(stored.read_text("utf8")) == json.loads((tmp_path / "table.json").read_text("utf8"))
