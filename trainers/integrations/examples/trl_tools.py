"""TRL's GRPOTrainer with an environment whose actions are calls of a tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from tiny_model import ENV_ID, SETTINGS, tiny_model, tool_talks
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

from turngym.trainers.integrations.trl import ToolEnvironment, task_rows, tool_environment


def solved(environments: Sequence[ToolEnvironment], **columns: Any) -> list[float]:
    """Pay a little for each solved episode, on top of the return that the environment itself gives."""
    return [0.1 * env.episode.result.success for env in environments]


def main(folder: str = "runs/trl_tools", steps: int = 3) -> GRPOTrainer:
    """Train for a few steps and return the trainer."""
    model, tokenizer = tiny_model(tool_talks(40), qwen2_5_chat_template, [ToolEnvironment().act])
    config = GRPOConfig(
        output_dir=folder,
        max_steps=steps,
        num_generations=4,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        max_completion_length=320,
        max_tool_calling_iterations=6,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=config,
        train_dataset=Dataset.from_list(task_rows(ENV_ID, range(100, 120))),
        environment_factory=tool_environment(ENV_ID, **SETTINGS),
        reward_funcs=solved,
    )
    trainer.train()
    return trainer


if __name__ == "__main__":
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    shown = ("reward", "reward_std", "tools/call_frequency", "loss")
    for entry in main().state.log_history:
        if "reward" in entry:  # the last entry sums up the run
            print({name: entry[name] for name in shown if name in entry})
