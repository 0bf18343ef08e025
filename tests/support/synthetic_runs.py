"""Run folders made by hand, with outcomes that a test chooses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.agents.episodes.evaluate import summarise
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

ENV = "turngym/Sokoban-v0"
NASTY = "<script>alert(\"x\")</script> & 'quoted' \u2028 </pre></details> \x07 \u202etxt"
OBSERVATION = "\n#####\n#@$.#\n#####"


def trajectory(
    instance: str, success: int, *, completion: str = "<action>right</action>", fault: str = ""
) -> Trajectory:
    """Return an episode of two turns, the first of them invalid; a success earns 1 on the second."""
    turns = [
        Turn(OBSERVATION, "a", "fly", completion, (1, 2), (3, 4), (-0.5, -0.25), -0.1, action_is_valid=False),
        Turn(OBSERVATION, "b", "right", completion, (1, 2), (3, 4), (-0.125, -1.0), float(success)),
    ]
    return Trajectory(
        EpisodeSpec(0, 7),
        ENV,
        instance,
        turns,
        terminated=bool(success),
        truncated=not success,
        success=success,
        score=float(success),
        fault=fault,
        final_observation="the end",
    )


def write_evaluation(folder: RunFolder, name: str, outcomes: Sequence[int], first_instance: int = 0) -> None:
    """Write an evaluation with an outcome for each instance ``i<number>``."""
    found = [trajectory(f"i{first_instance + k}", success) for k, success in enumerate(outcomes)]
    folder.write_evaluation(name, summarise(ENV, found))


def metrics_record(iteration: int, *, every: int = 4, gain: float = 0.02) -> dict[str, Any]:
    """Return the metrics of one iteration, with an evaluation in every few of them."""
    success = min(1.0, 0.3 + gain * iteration)
    record = {
        "iteration": iteration,
        "turns_total": 500 * (iteration + 1),
        "seconds_total": 2.5 * (iteration + 1),
        "rollout/success": success + (0.05 if iteration % 2 else -0.05),
        "rollout/reward_sum": success,
        "rollout/turns": 9.5,
        "loss/entropy": 1.0 / (iteration + 1),
        "loss/clip_fraction": 0.01 * iteration,
        "train/grad_norm": 0.75,
        "train/logprob_gap": 1e-6,
    }
    if iteration % every == 0:
        record |= {
            "eval/success": success,
            "eval/success_low": success - 0.1,
            "eval/success_high": min(1.0, success + 0.1),
        }
    return record


def run_folder(
    path: Path, outcomes: Mapping[str, Sequence[int]], *, iterations: int = 20, gain: float = 0.02, **config: Any
) -> RunFolder:
    """Make a run folder: an evaluation for each name in ``outcomes``, metrics, samples, and training's instances."""
    folder = RunFolder.create(path, TrainConfig(**config))
    for iteration in range(iterations):
        folder.append_metrics(metrics_record(iteration, gain=gain))
    for name, results in outcomes.items():
        write_evaluation(folder, name, results)
    folder.write_samples("final", [trajectory(f"i{k}", k % 2, completion=NASTY) for k in range(5)])
    folder.write_samples("warmup", [trajectory(f"i{k}", 0) for k in range(5)])
    folder.write_instances([f"t{k}" for k in range(12_345)])
    return folder
