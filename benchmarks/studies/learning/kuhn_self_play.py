"""Kuhn poker by self-play: how exploitable is the policy, how exploitable is its average over training?

One small language model plays both seats of text Kuhn poker against itself and learns with role-conditioned advantage
estimation. After every iteration its twelve distributions are read from the network (not counted in samples), and their
exact exploitability is computed: 0.458 for random play, 0 for an equilibrium. The average policy weighs each
iteration by its number and each information set by how often the policy itself gets there.

Arms, written down before they ran, three seeds each:

- ``regularised``: entropy bonus 0.1, no momentum. Policy gradients circle around an equilibrium; the bonus pulls inward
  (its own fixed point is exploitable by 0.019), and momentum would push outwards.
- ``defaults``: the entropy bonus 0.01 of version 0.1.0 and momentum 0.9; everything else the same.

The settings of ``regularised`` were found with seed 0, on exact gradients and one run of 400 iterations. The warm-up
imitates random play, so it teaches how to answer and nothing about poker.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from turngym.agents.episodes.self_play import LEARNER, GameSpec
from turngym.agents.models.action_probabilities import Choice, action_chances, choices_by_anchor
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel, load_model
from turngym.benchmarks.machine import machine
from turngym.envs.tablegames.kuhn_poker.rules import equilibrium, exploitability, outcomes, uniform
from turngym.storage.files import write_json
from turngym.terminal.console import Console
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.game_task import GameTask
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import policy_agent
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.report.curve import BLUE, DASHES, PIXELS_PER_INCH, SIZE, VERMILION
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "runs" / "benchmarks"
RESULTS = ROOT / "benchmarks" / "results"
SEEDS = (0, 1, 2)
ITERATIONS = 700
TARGET = 0.05
ARMS: Mapping[str, Mapping[str, float]] = {
    "regularised": {"entropy_coef": 0.1, "momentum": 0.0},
    "defaults": {"entropy_coef": 0.01, "momentum": 0.9},
}
COLOURS = {"regularised": BLUE, "defaults": VERMILION}
Policy = dict[str, dict[str, float]]


def config_of(arm: str, seed: int) -> TrainConfig:
    """Return the settings of a run."""
    settings = ARMS[arm]
    return TrainConfig(
        env="turngym/KuhnPoker-v0",
        env_options={},
        algorithm="rae",
        # an invalid answer must cost more than the entropy bonus pays for all tokens that are no action
        algorithm_options={"rae": {"entropy_coef": settings["entropy_coef"], "invalid_penalty": 2.0, "dual_clip": 3.0}},
        iterations=ITERATIONS,
        max_seconds=480,
        seed=seed,
        control=False,
        checkpoint_every=ITERATIONS,
        embedded=EmbeddedConfig(hidden_size=64, layers=2, heads=4, vocabulary=340),
        warmup=SupervisedConfig(demonstrations=200, epochs=150),
        rollout=RolloutConfig(groups=256, group_size=1, format="plain", max_new_tokens=1),
        update=UpdateConfig(learning_rate=1e-4, beta1=settings["momentum"]),
        evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
    )


class Watcher:
    """Reads the policy after every iteration.

    Args:
        config: Settings of the run.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.choices: dict[str, Choice] = {}
        self.sums: Policy = {}
        self.records: list[dict[str, float]] = []
        self.last: Policy = {}
        self._start = time.process_time()

    def __call__(self, model: LanguageModel, record: Mapping[str, Any]) -> None:
        """Take in the policy of an iteration."""
        if not self.choices:
            self._find_choices(model)
        self.last, missing = self._policy(model)
        self._add(int(record["iteration"]) + 1)
        self.records.append(
            {
                "games": self.config.rollout.groups * (int(record["iteration"]) + 1),
                "last": exploitability(self.last),
                "average": exploitability(self.average),
                "not_an_action": missing,
                "wall_seconds": float(record["time/seconds_total"]),
                "cpu_seconds": time.process_time() - self._start,
            }
        )

    def _find_choices(self, model: LanguageModel) -> None:
        """Play some games for the prompts of the twelve information sets."""
        legal = {name: tuple(chances) for name, chances in uniform().items()}
        specs = [GameSpec(number, number) for number in range(400)]
        games = GameTask(self.config).tables.play(specs, {LEARNER: policy_agent(self.config, model)})
        self.choices = choices_by_anchor(games, legal)
        if self.choices.keys() != legal.keys():
            raise SystemExit(f"400 games did not reach {sorted(legal.keys() - self.choices.keys())}.")

    def _policy(self, model: LanguageModel) -> tuple[Policy, float]:
        """Return the policy given that an action is answered, and the largest probability that none is."""
        found = action_chances(model, list(self.choices.values()), format="plain", temperature=1.0, max_new_tokens=1)
        sums = [sum(chances.values()) for chances in found]
        policy = {
            name: {action: chance / total for action, chance in chances.items()}
            for name, chances, total in zip(self.choices, found, sums, strict=True)
        }
        return policy, 1 - min(sums)

    def _add(self, weight: float) -> None:
        """Add the policy to the average, each information set by the chance of its own earlier action."""
        for name, chances in self.last.items():
            own = self.last[name.split()[0]]["check"] if name.endswith("check bet") else 1.0
            sums = self.sums.setdefault(name, dict.fromkeys(chances, 0.0))
            for action, chance in chances.items():
                sums[action] += weight * own * chance

    @property
    def average(self) -> Policy:
        """The average policy so far."""
        return {
            name: {action: value / sum(sums.values()) for action, value in sums.items()}
            for name, sums in self.sums.items()
        }


def run(arm: str, seed: int) -> dict[str, Any]:
    """Run one arm with one seed, unless its result is there."""
    folder = RUNS / f"kuhn-{arm}-seed{seed}"
    result = folder / "kuhn.json"
    if not result.exists():
        shutil.rmtree(folder, ignore_errors=True)
        config = config_of(arm, seed)
        watcher = Watcher(config)
        train(config, folder, console=Console(quiet=True), watch=watcher)
        write_json(result, {"records": watcher.records, "last": watcher.last, "average": watcher.average})
    found: dict[str, Any] = json.loads(result.read_text("utf8"))
    final = found["records"][-1]
    print(
        f"{arm:12} seed {seed}: exploitability {final['last']:.4f} last, {final['average']:.4f} average, "
        f"{final['games']} games, {final['cpu_seconds']:.0f} s of one core",
        flush=True,
    )
    return found


def before(arm: str, seed: int) -> Policy:
    """Return the policy that self-play started from: that of the warm-up."""
    watcher = Watcher(config_of(arm, seed))
    model = load_model(str(RUNS / f"kuhn-{arm}-seed{seed}" / "warmup"))
    watcher(model, {"iteration": 0, "time/seconds_total": 0.0})
    return watcher.last


def against(policy: Policy, opponent: Policy) -> dict[str, float]:
    """Return the exact share of hands won and chips per hand, half of the hands in either seat."""
    first = outcomes(policy, opponent)
    second = {-chips: chance for chips, chance in outcomes(opponent, policy).items()}
    return {
        "won": sum(chance for each in (first, second) for chips, chance in each.items() if chips > 0) / 2,
        "chips_per_hand": sum(chance * chips for each in (first, second) for chips, chance in each.items()) / 2,
    }


def strength(arm: str, seed: int, found: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return opponent -> policy before and after self-play -> its exact results, and print them."""
    policies = {"before": before(arm, seed), "last": found["last"], "average": found["average"]}
    opponents = {"random": uniform(), "equilibrium": equilibrium(1 / 6)}
    results = {
        name: {stage: against(policy, opponent) for stage, policy in policies.items()}
        for name, opponent in opponents.items()
    }
    for name, stages in results.items():
        told = (f"{s} {100 * r['won']:.1f} % ({r['chips_per_hand']:+.3f} chips)" for s, r in stages.items())
        print(f"{arm:12} seed {seed} against {name:11}: {', '.join(told)}", flush=True)
    return results


def first_below(records: list[dict[str, float]], key: str) -> dict[str, float] | None:
    """Return the first record from which on a curve stays below the target, None if there is none."""
    kept = None
    for record in reversed(records):
        if record[key] >= TARGET:
            break
        kept = record
    return kept


def picture(runs: Mapping[str, list[dict[str, Any]]], target: Path) -> None:
    """Draw exploitability over games: the average policy solid, the last one dotted, a line for each seed."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    for arm, of_arm in runs.items():
        for index, each in enumerate(of_arm):
            games = [record["games"] for record in each["records"]]
            for key, dashes, width in (("average", DASHES[0], 1.8), ("last", DASHES[3], 0.8)):
                label = f"{arm}, {key}" if index == 0 else None
                values = [record[key] for record in each["records"]]
                axes.plot(games, values, color=COLOURS[arm], linestyle=dashes, linewidth=width, label=label)
    axes.axhline(TARGET, color="black", linewidth=0.8)
    axes.annotate("0.05", (0, TARGET), xytext=(2, 3), textcoords="offset points", fontsize=8)
    axes.set(xlabel="games of self-play", ylabel="exploitability per hand", yscale="log", title="Kuhn poker, self-play")
    axes.legend(fontsize=8)
    FigureCanvasAgg(figure)
    figure.savefig(target, dpi=PIXELS_PER_INCH)


def main() -> int:
    """Run what is missing, print the figures, write ``benchmarks/results/kuhn_self_play.json`` and the picture."""
    runs = {arm: [run(arm, seed) for seed in SEEDS] for arm in ARMS}
    summary = {
        arm: [
            {
                "seed": seed,
                "final": each["records"][-1],
                "largest_not_an_action": max(record["not_an_action"] for record in each["records"]),
                "below_target_from": {key: first_below(each["records"], key) for key in ("last", "average")},
                "against": strength(arm, seed, each),
                "last_policy": each["last"],
                "average_policy": each["average"],
            }
            for seed, each in zip(SEEDS, of_arm, strict=True)
        ]
        for arm, of_arm in runs.items()
    }
    content = {
        "machine": machine("torch", "transformers"),
        "command": "python benchmarks/studies/learning/kuhn_self_play.py",
        "target": TARGET,
        "arms": {arm: config_of(arm, 0).as_json() for arm in ARMS},
        "runs": summary,
        "curves": {
            arm: [[{k: r[k] for k in ("games", "last", "average")} for r in each["records"][::10]] for each in of_arm]
            for arm, of_arm in runs.items()
        },
    }
    write_json(RESULTS / "kuhn_self_play.json", content)
    picture(runs, RESULTS / "kuhn_self_play.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
