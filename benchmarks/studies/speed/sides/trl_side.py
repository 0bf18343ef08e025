"""Steps of TRL's ``GRPOTrainer`` in a process of its own, for ``training_vs_trl.py``; see there.

Turns go through TRL's hook ``rollout_func``: :class:`turngym.trainers.integrations.trl.Rollout` steps the environments,
and TRL's own ``_generate_single_turn`` writes every answer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import torch

from turngym.benchmarks.studies.speed.sides.trl_task import ENV_ID, SAMPLED, register
from turngym.benchmarks.studies.speed.sides.worker import serve

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from turngym.agents.models.generate import Completion
from turngym.trainers.integrations.trl import Rollout, return_reward, rollout_rows, task_rows


class Clock(TrainerCallback):
    """Notes the processor time at the end of every step."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_begin(self, *given: Any, **named: Any) -> None:
        """Begin the first step."""
        self.ends.append(time.process_time())

    def on_step_end(self, *given: Any, **named: Any) -> None:
        """End a step, optimiser included."""
        self.ends.append(time.process_time())


class Counted(Rollout):
    """Counts what a rollout returns, and the processor seconds that it took."""

    def __init__(self) -> None:
        super().__init__("plain", SAMPLED, generate=answers)
        self.seen: list[dict[str, int]] = []
        self.seconds: list[float] = []

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Play one episode for each prompt."""
        start = time.process_time()
        found = super().__call__(prompts, trainer)
        self.seconds.append(time.process_time() - start)
        parts = (*found["prompt_ids"], *found["completion_ids"])
        self.seen.append(
            {
                "turns": int(sum(found["turns"])),
                "sampled": sum(map(sum, found["env_mask"])),
                "tokens": sum(map(len, parts)),
                "updates": 1,
            }
        )
        return found


def answers(trainer: Any, prompts: Sequence[tuple[int, ...]], sampling: Any, turn: int) -> list[Completion]:
    """Let TRL write the answers of a turn."""
    found, _ = trainer._generate_single_turn([list(prompt) for prompt in prompts], None, {}, 1)
    return [Completion(tuple(ids), (0.0,) * len(ids)) for ids in found]


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Train, and return seconds and counts of every step."""
    model = AutoModelForCausalLM.from_pretrained(told["model"], dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(told["model"])
    episodes = told["groups"] * told["group_size"]
    length = told["turns"] * 28 + 64
    batch = max(size for size in range(1, episodes + 1) if not episodes % size and (size == 1 or size * length <= 4096))
    rows = task_rows(ENV_ID, range(1000), settings={"turns": told["turns"], "words": told["words"]})
    clock, rollout = Clock(), Counted()
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            max_steps=told["iterations"],
            num_generations=told["group_size"],
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=episodes // batch,
            steps_per_generation=episodes // batch,
            learning_rate=1e-6,
            max_completion_length=length,
            generation_kwargs={"max_new_tokens": SAMPLED, "min_new_tokens": SAMPLED},
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            use_cpu=True,
            disable_tqdm=True,
            **{"bf16": False, **told["options"]},
        )
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            args=config,
            train_dataset=Dataset.from_list(rollout_rows(rows)),
            rollout_func=rollout,
            reward_funcs=return_reward,
            callbacks=[clock],
        )
        trainer.train()
    whole = [end - start for start, end in zip(clock.ends, clock.ends[1:], strict=False)]
    update = [total - part for total, part in zip(whole, rollout.seconds, strict=True)]
    last = {key: value for key, value in trainer.state.log_history[-2].items() if isinstance(value, (int, float))}
    return {"iteration": whole, "rollout": rollout.seconds, "update": update, "seen": rollout.seen, "last": last}


if __name__ == "__main__":
    torch.set_num_threads(1)
    register()
    serve(run)
