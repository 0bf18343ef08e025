"""The quickstart's models on 500 other held-out rooms: the settings were chosen while looking at the first 200."""

from __future__ import annotations

import dataclasses
import sys

from run_queue import RUNS, write_results

from turngym.agents.episodes.evaluate import EvaluationResult, distinct_instances, evaluate
from turngym.agents.intervals import paired_difference
from turngym.agents.models.loading import load_model
from turngym.trainers.loop.setup import policy_agent
from turngym.trainers.records.run_folder import RunFolder

ROOMS, DRAW = 500, 7
MODELS = {"warmup": "warmup", "final": "model", "control": "control/model"}


def main() -> int:
    """Evaluate, print, and write ``benchmarks/results/fresh_rooms.json``."""
    content = {}
    for seed in (0, 1, 2):
        folder = RunFolder(RUNS / f"quickstart-seed{seed}")
        config = folder.config()
        options = {**config.env_options, "split": "test"}
        looked_at = distinct_instances(config.env, 200, options, 0)
        drawn = distinct_instances(config.env, ROOMS + 200, options, DRAW)
        seeds = [value for name, value in drawn.items() if name not in looked_at][:ROOMS]
        results: dict[str, EvaluationResult] = {}
        for name, place in MODELS.items():
            agent = policy_agent(config, load_model(str(folder.path / place)), iteration=-3)
            results[name], _ = evaluate(config.env, agent, seeds=seeds, env_kwargs=options, num_envs=256)
        gains = {
            other: dataclasses.asdict(paired_difference(results["final"].successes(), results[other].successes()))
            for other in ("warmup", "control")
        }
        success = {name: result.success.value for name, result in results.items()}
        content[folder.path.name] = {"rooms": len(seeds), "success": success, "final_minus": gains}
        text = ", ".join(
            f"final - {name} {100 * gain['value']:+.1f} [{100 * gain['low']:.1f}, {100 * gain['high']:.1f}]"
            for name, gain in gains.items()
        )
        print(folder.path.name, success, text)
    write_results("fresh_rooms", content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
