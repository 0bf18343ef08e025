"""TRL's GRPOTrainer with a rollout function, for models that call no tools: two games in one batch."""

from __future__ import annotations

import os

from datasets import Dataset
from tiny_model import ENV_ID, SETTINGS, talks, tiny_model
from trl import GRPOConfig, GRPOTrainer

from turngym.trainers.integrations.trl import Rollout, return_reward, rollout_rows, task_rows


def main(folder: str = "runs/trl_rollout", steps: int = 3) -> GRPOTrainer:
    """Train for a few steps and return the trainer."""
    model, tokenizer = tiny_model(talks(40))
    config = GRPOConfig(
        output_dir=folder,
        max_steps=steps,
        num_generations=4,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        max_completion_length=160,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
    )
    walks = task_rows(ENV_ID, range(100, 110), settings=SETTINGS)
    cards = task_rows("turngym/KuhnPokerSeat-v0", range(10), wrappers=["turn_limit:limit=3"])
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=config,
        train_dataset=Dataset.from_list(rollout_rows([*walks, *cards])),
        rollout_func=Rollout(max_new_tokens=24),
        reward_funcs=return_reward,
    )
    trainer.train()
    return trainer


if __name__ == "__main__":
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    shown = ("reward", "reward_std", "loss", "grad_norm")
    for entry in main().state.log_history:
        if "reward" in entry:  # the last entry sums up the run
            print({name: entry[name] for name in shown if name in entry})
