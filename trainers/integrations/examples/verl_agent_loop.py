"""verl's agent-loop worker on turngym's loop, and one GRPO update with verl's own advantages and loss, on a CPU."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from hf_server import HFServer
from hydra import compose, initialize_config_module
from tiny_model import ENV_ID, SETTINGS, talks, tiny_model
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, compute_policy_loss_vanilla
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.torch_functional import logprobs_from_logits

from turngym.agents.models.loading import LanguageModel
from turngym.trainers.integrations.verl import verl_rows


def main() -> tuple[DataProto, HFServer, float]:
    """Play 4 rows 4 times each; return verl's batch, what was sampled, and the loss of an update on it."""
    network, tokenizer = tiny_model(talks(40))
    model = LanguageModel(network, tokenizer, "tiny")
    with TemporaryDirectory() as folder, initialize_config_module("verl.trainer.config", version_base=None):
        model.save(Path(folder))
        rollout = "actor_rollout_ref.rollout"
        sizes = [f"{rollout}.name=vllm", f"{rollout}.prompt_length=256", f"{rollout}.response_length=160"]
        other = [f"{rollout}.agent.agent_loop_config_path={Path(__file__).with_name('verl_agent_loop.yaml')}"]
        other += ["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16"]
        config = compose("ppo_trainer", [f"actor_rollout_ref.model.path={folder}", *sizes, *other])
        server = HFServer(config, model)
        worker = AgentLoopWorker(config, server)
        rows = [row for row in verl_rows(ENV_ID, range(100, 104), settings=SETTINGS) for _ in range(4)]
        columns = {("raw_prompt" if name == "prompt" else name): [row[name] for row in rows] for name in rows[0]}
        asked = DataProto.from_dict(non_tensors={name: np.fromiter(v, object) for name, v in columns.items()})
        batch = asyncio.run(worker.generate_sequences(asked))
    data, mask = batch.batch, batch.batch["response_mask"]
    advantages, _ = compute_grpo_outcome_advantage(data["rm_scores"], mask, columns["seed"])
    optimizer = torch.optim.AdamW(model.network.parameters(), lr=1e-3)
    logits = model.network(data["input_ids"], data["attention_mask"], position_ids=data["position_ids"]).logits
    now = logprobs_from_logits(logits[:, -mask.shape[1] - 1 : -1], data["responses"])
    data["log_probs"] = now.detach()
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    loss, _ = compute_policy_loss_vanilla(data["rollout_log_probs"], now, advantages, mask, config=actor)
    loss.backward()
    optimizer.step()
    return batch, server, loss.item()


if __name__ == "__main__":
    batch, _, loss = main()
    print("mean return", float(batch.batch["rm_scores"].sum(-1).mean()), "turns", batch.non_tensor_batch["turns"], loss)
