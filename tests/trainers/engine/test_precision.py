"""16-bit training: float32 masters, gradients added up in float32, loss scales, what a device can do."""

import copy
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from small import play, small_model

from turngym.__main__ import main
from turngym.agents.models.generate import generate
from turngym.agents.models.loading import LanguageModel, load_model, set_format
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError, DivergenceError
from turngym.trainers.algorithms import build
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.precision import LossScale, Masters
from turngym.trainers.engine.probe import mismatch_warning, probe_gap
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.precision import chosen_precision, has_fast_bf16

CPU = torch.device("cpu")


def model_in(dtype: torch.dtype, hidden: int = 16) -> LanguageModel:
    model = small_model(hidden=hidden)
    set_format(model.network, dtype)
    return model


@pytest.fixture(scope="module")
def trajectories() -> list[Trajectory]:
    played = play(model_in(torch.bfloat16))
    for number, trajectory in enumerate(played):
        trajectory.turns[-1].reward = float(number % 2)
    return played


def learner_of(name: str = "grpo", dtype: torch.dtype = torch.bfloat16, **settings: object) -> Learner:
    torch.manual_seed(0)
    return Learner(model_in(dtype), build(name), UpdateConfig(**settings))  # type: ignore[arg-type]


def moved(before: list[torch.Tensor], after: list[torch.Tensor]) -> tuple[float, float]:
    """Return the share of numbers that changed, and how far they moved on average."""
    a, b = (torch.cat([tensor.double().flatten() for tensor in each]) for each in (before, after))
    return float((a != b).double().mean()), float((a - b).abs().mean())


def test_masters_move_by_small_steps_that_16_bit_weights_lose() -> None:
    """20 equal steps of 1e-6: AdamW on bfloat16 weights stays where it was after one, masters move by 2e-5."""
    torch.manual_seed(0)
    first = [torch.nn.Parameter((torch.randn(300, 300) * 0.05).bfloat16()) for _ in range(4)]
    gradients = [torch.randn(300, 300).bfloat16() for _ in first]
    low, plain = (copy.deepcopy(first) for _ in range(2))
    masters = Masters(low)
    with_masters = torch.optim.AdamW([masters.of(p) for p in low], lr=1e-6, weight_decay=0.0)
    without = torch.optim.AdamW(plain, lr=1e-6, weight_decay=0.0)
    for _ in range(20):
        for parameter, other, gradient in zip(low, plain, gradients, strict=True):
            with masters.collecting():
                (parameter * gradient).sum().backward()
            other.grad = gradient.clone()
        for optimizer in (with_masters, without):
            optimizer.step()
            optimizer.zero_grad()
        masters.publish()
    start: list[torch.Tensor] = [p.detach() for p in first]
    changed, _ = moved(start, [p.detach() for p in low])
    lost, little = moved(start, [p.detach() for p in plain])
    _, distance = moved(start, [masters.of(p).detach() for p in low])
    assert changed > 3 * lost and lost < 0.015
    assert distance == pytest.approx(2e-5, rel=0.02) and little < 5e-7


def test_gradients_of_micro_batches_are_added_up_in_float32(trajectories: list[Trajectory]) -> None:
    """Against the sum of the same 16-bit gradients in float64; added up in bfloat16 they are off by over 1e-3."""
    learner = learner_of()
    batch = learner.prepare(trajectories)
    exact = [torch.zeros_like(p, dtype=torch.float64) for p in learner.policy_parameters]
    rounded = [torch.zeros_like(p) for p in learner.policy_parameters]
    parts = list(batch.micro_batches(max_tokens=64))
    assert len(parts) > 4
    for inputs in parts:
        loss = learner.algorithm.loss(inputs).total(inputs)
        gradients = torch.autograd.grad(loss, learner.policy_parameters, retain_graph=True)
        for total, short, gradient in zip(exact, rounded, gradients, strict=True):
            total += gradient.double()
            short += gradient
        with learner.masters.collecting():
            loss.backward()
    assert all(p.grad is None for p in learner.policy_parameters)
    masters = map(learner.masters.of, learner.policy_parameters)
    sums = [master.grad for master in masters if master.grad is not None]
    assert len(sums) == len(exact)

    def distance(found: list[torch.Tensor]) -> float:
        off = sum(float((a.double() - b).square().sum()) for a, b in zip(found, exact, strict=True))
        return float((off / sum(float(b.square().sum()) for b in exact)) ** 0.5)

    assert distance(sums) < 1e-6 < 1e-3 < distance(rounded)


def test_probes_clipping_and_transforms_see_float32(trajectories: list[Trajectory]) -> None:
    learner = learner_of("grpo+epo")
    seen: list[torch.dtype] = []
    original = learner.algorithm.transform_gradients

    def look(gradients: Sequence[torch.Tensor], probes: Any, metrics: Any) -> Any:
        seen.extend(tensor.dtype for tensors in (gradients, *probes.values()) for tensor in tensors)
        return original(gradients, probes, metrics)

    learner.algorithm.transform_gradients = look  # type: ignore[method-assign]
    learner.update(trajectories, 0)
    assert set(seen) == {torch.float32}
    moments = {value.dtype for state in learner.optimizer.state.values() for value in state.values()}
    assert moments == {torch.float32}


@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_the_network_is_the_rounded_master_after_an_update(name: str, trajectories: list[Trajectory]) -> None:
    """The critic's transformer is 16-bit and trained, so it has masters too; its output is float32 by itself."""
    learner = learner_of(name, learning_rate=1e-5)
    learner.update(trajectories, 0)
    trained = [*learner.policy_parameters, *learner.other_parameters]
    assert sum(learner.masters.of(p) is p for p in trained) == (2 if name == "ppo" else 0)
    for parameter in trained:
        master = learner.masters.of(parameter)
        assert master.dtype == torch.float32
        assert torch.equal(parameter, master.to(parameter.dtype))


def test_in_float32_the_optimiser_updates_the_network_itself() -> None:
    learner = learner_of("ppo", torch.float32)
    assert all(learner.masters.of(p) is p for p in learner.policy_parameters + learner.other_parameters)


@pytest.mark.parametrize("name", ["ppo", "grpo"])
def test_a_checkpoint_holds_the_masters(name: str, tmp_path: Path, trajectories: list[Trajectory]) -> None:
    learner, resumed = (learner_of(name, learning_rate=1e-5) for _ in range(2))
    learner.update(trajectories, 0)
    load_checkpoint(save_checkpoint(tmp_path, learner, 1, {}), resumed)
    for each in (learner, resumed):
        each.update(trajectories, 1)
    for parameter, other in zip(
        learner.policy_parameters + learner.other_parameters,
        resumed.policy_parameters + resumed.other_parameters,
        strict=True,
    ):
        assert torch.equal(parameter, other)
        assert torch.equal(learner.masters.of(parameter), resumed.masters.of(other))


def test_masters_in_the_cpus_memory_give_the_same_update(trajectories: list[Trajectory]) -> None:
    """In float32 too: with ``offload`` the optimiser works on copies, which a GPU's network is given back."""
    plain = learner_of("ppo", torch.float32)
    plain.update(trajectories, 0)
    offloaded = learner_of("ppo", torch.float32, offload=True)
    assert all(offloaded.masters.of(p) is not p for p in offloaded.policy_parameters)
    offloaded.update(trajectories, 0)
    for a, b in zip(plain.policy_parameters, offloaded.policy_parameters, strict=True):
        assert torch.equal(a, b)


def test_float16_trains_with_a_scaled_loss(tmp_path: Path, trajectories: list[Trajectory]) -> None:
    """The update is that of an unscaled float32 run, up to rounding; the scale comes back with a checkpoint."""
    learner = learner_of(dtype=torch.float16)
    assert learner.loss_scale.value == 2**16
    metrics = learner.update(trajectories, 0)
    exact = learner_of(dtype=torch.float32).update(trajectories, 0)
    assert metrics["train/grad_norm"] == pytest.approx(exact["train/grad_norm"], rel=0.05)
    assert metrics["train/loss_scale"] == 2**16 and "train/loss_scale" not in exact
    learner.loss_scale.value = 4.0
    resumed = learner_of(dtype=torch.float16)
    load_checkpoint(save_checkpoint(tmp_path, learner, 1, {}), resumed)
    assert (resumed.loss_scale.value, resumed.loss_scale.good) == (4.0, 1)


def test_an_overflow_in_float16_is_skipped_and_halves_the_scale(trajectories: list[Trajectory]) -> None:
    learner = learner_of(dtype=torch.float16)
    before = [parameter.clone() for parameter in learner.policy_parameters]
    learner.loss_scale.value = 2.0**40
    metrics = learner.update(trajectories, 0)
    assert learner.loss_scale.value == metrics["train/loss_scale"] == 2.0**39 and learner.updates == 0
    assert all(torch.equal(a, b) for a, b in zip(before, learner.policy_parameters, strict=True))
    scale = LossScale(is_needed=True, patience=2)
    assert [scale.skips(True), scale.skips(True), scale.value] == [False, False, 2.0**17]
    scale.value = 1.0
    assert not scale.skips(False), "a gradient that overflows without a scale is an error"


def test_a_gradient_that_is_not_finite_is_named(trajectories: list[Trajectory]) -> None:
    learner = learner_of()
    original = learner.algorithm.transform_gradients

    def spoil(gradients: Sequence[torch.Tensor], probes: Any, metrics: Any) -> Any:
        gradients[1].fill_(float("nan"))
        return original(gradients, probes, metrics)

    learner.algorithm.transform_gradients = spoil  # type: ignore[method-assign]
    with pytest.raises(DivergenceError, match="a gradient is not finite") as found:
        learner.update(trajectories, 0)
    assert found.value.where["parameter"] == "policy." + [name for name, _ in learner.network.named_parameters()][1]


def test_a_sampler_in_another_format_is_told_with_its_gap() -> None:
    """A real sampler beside the trainer: the same weights in bfloat16."""
    model, other = model_in(torch.float32, hidden=64), model_in(torch.bfloat16, hidden=64)
    assert not mismatch_warning(model, "bfloat16", "float32"), "the trainer's own network samples"
    model.generate = lambda prompts, uniforms, sampling: generate(
        other.network, prompts, uniforms, sampling, frozenset()
    )
    assert not mismatch_warning(model, "auto", "float32") and not mismatch_warning(model, "float32", "float32")
    said = mismatch_warning(model, "bfloat16", "float32")
    assert "the sampler computes in bfloat16 and the trainer in float32" in said
    mean, p99, largest = (float(number) for number in re.findall(r"\d\.\d+(?:e-\d+)?", said)[:3])
    assert 1e-4 < mean < p99 <= largest < 0.7
    assert probe_gap(other, model.generate)["mean"] < 0.06


def test_positions_are_not_rounded_with_the_weights() -> None:
    """Frequencies of rotary positions in bfloat16 would double the error at position 1,000."""
    network = model_in(torch.bfloat16).network
    assert {p.dtype for p in network.parameters()} == {torch.bfloat16}
    assert {b.dtype for name, b in network.named_buffers() if "inv_freq" in name} == {torch.float32}


def test_a_precision_that_the_device_lacks_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["train", "--precision", "fp16", "--device", "cpu", "--run-dir", str(run)]) == 2
    assert "precision fp16 needs a GPU" in capsys.readouterr().err and not run.exists()
    assert main(["train", "--update.offload", "--device", "cpu", "--run-dir", str(run)]) == 2
    assert "leave out --update.offload" in capsys.readouterr().err and not run.exists()
    with pytest.raises(ConfigError, match="precision must be one of 'auto', 'fp32', 'bf16', 'fp16', got 'int8'"):
        TrainConfig(precision="int8")  # type: ignore[arg-type]


def test_auto_is_bf16_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_precision("auto", CPU) == ("bf16" if has_fast_bf16(CPU) else "fp32")
    for has_amx, has_avx in ((True, False), (False, True), (False, False)):
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda has_amx=has_amx: has_amx)
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has_avx=has_avx: has_avx)
        assert chosen_precision("auto", CPU) == ("bf16" if has_amx or has_avx else "fp32")
        assert chosen_precision("bf16", CPU) == "bf16", "emulated, if it is asked for"


@pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_an_optimiser_in_8_bits_without_its_package_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["train", "--update.optimizer", "adamw_8bit", "--run-dir", str(run)]) == 2
    assert "adamw_8bit needs the package bitsandbytes" in capsys.readouterr().err and not run.exists()


@pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")
def test_a_state_of_8_bits_comes_back_with_a_checkpoint(tmp_path: Path, trajectories: list[Trajectory]) -> None:
    def learner() -> Learner:
        torch.manual_seed(0)
        return Learner(model_in(torch.bfloat16, hidden=64), build("grpo"), UpdateConfig(optimizer="adamw_8bit"))

    first, resumed = learner(), learner()
    first.update(trajectories, 0)
    states = first.optimizer.state.values()
    assert torch.uint8 in {v.dtype for state in states for v in state.values() if isinstance(v, torch.Tensor)}
    load_checkpoint(save_checkpoint(tmp_path, first, 1, {}), resumed)
    for each in (first, resumed):
        each.update(trajectories, 1)
    for a, b in zip(first.policy_parameters, resumed.policy_parameters, strict=True):
        assert torch.equal(first.masters.of(a), resumed.masters.of(b))


def test_a_checkpoint_of_masters_plays_with_them_whatever_the_first_model_was_saved_in(tmp_path: Path) -> None:
    learner = learner_of()
    learner.model.save(tmp_path / "run" / "warmup")
    (tmp_path / "run" / "config.json").write_text("{}")
    (tmp_path / "run" / "metrics.jsonl").touch()
    name, parameter = next(iter(learner.network.named_parameters()))
    with torch.no_grad():
        learner.masters.of(parameter).add_(1e-6)
    checkpoint = save_checkpoint(tmp_path / "run" / "checkpoints", learner, 1, {})
    played = load_model(str(checkpoint), device="cpu").network
    assert torch.equal(played.get_parameter(name), learner.masters.of(parameter))
