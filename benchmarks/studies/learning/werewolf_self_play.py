"""Werewolf with 5 seats by self-play in a population: games won against held-out opponents, before and after.

    python benchmarks/studies/learning/werewolf_self_play.py                 # both arms
    python benchmarks/studies/learning/werewolf_self_play.py population      # one of them

Nobody talks (``talk_rounds=0``), and ballots are cast one after another in public (``vote_protocol=sequential``): what
can be learnt is whom to look at, to protect, to kill and to vote for, and what the ballots of others tell. The policy
is that of ``werewolf_policy.py``, which begins as random play; the trainer is that of every run, with role-conditioned
advantages.

Arms, written down before they ran, five seeds each, 19,200 games a run; where there is an opponent, half of the games
are played as either side:

- ``population``: a quarter of the games is the learner against itself. The others are against its four newest frozen
  selves, ``rule_based`` and ``random``, drawn with ``--self-play.matching squared``: in proportion to (1 - p)^2, with p
  the share that the learner wins from that side.
- ``self-play``: the learner against itself alone.

The policy plays the same 400 deals before and after training, from either side, against each of

- ``ballot_reader``: rules that training never meets,
- the trained policies of the other seeds of the arm, which training never meets either,
- ``rule_based`` and ``random``, which the population trains against.

An arm improves against held-out opponents if the 95 % interval of the gain, averaged over both sides and the two kinds
of held-out opponents, lies above 0: a bootstrap over training seeds and deals, and for each seed over deals.
``reference`` has what random play, two sets of rules and an oracle that knows all roles win on these deals. The
settings were found with seed 100. Finished runs are kept, broken-off ones go on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from facts_policy import FactsAgent, random_policy, train, trained
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from run_queue import RESULTS, RUNS, write_results
from werewolf_deals import GAME, OPTIONS, ORACLE, SIDES, Games, Won, gains, interval
from werewolf_policy import WEREWOLF

from turngym.agents.core import Agent
from turngym.storage.files import write_json
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import BLUE, PIXELS_PER_INCH, SIZE, VERMILION
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig

SEEDS = (0, 1, 2, 3, 4)
ITERATIONS = 150
DEALS = 400
POPULATION, ALONE = "population", "self-play"
MATCHES: Mapping[str, SelfPlayConfig] = {
    POPULATION: SelfPlayConfig(
        opponents=("self", "past:4", "rule_based", "random"), freeze_every=10, matching="squared"
    ),
    ALONE: SelfPlayConfig(opponents=("self",)),
}
PEERS = "other seeds"
HELD_OUT = ("ballot_reader", PEERS)
OPPONENTS = (*HELD_OUT, "rule_based", "random")
STAGES = ("before", "after")


def config_of(arm: str, seed: int) -> TrainConfig:
    """Return the settings of a run."""
    return TrainConfig(
        env=GAME,
        env_options=OPTIONS,
        algorithm="rae",
        algorithm_options={"rae": {"entropy_coef": 0.005, "dual_clip": 3.0}},
        iterations=ITERATIONS,
        max_seconds=0.0,
        seed=seed,
        threads=1,
        control=False,
        checkpoint_every=10,
        rollout=RolloutConfig(groups=128, group_size=1, format="plain"),
        update=UpdateConfig(learning_rate=0.08, minibatches=2, schedule="linear"),
        evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
        self_play=MATCHES[arm],
    )


def folder_of(arm: str, seed: int) -> Path:
    """Return the folder of a run."""
    found: Path = RUNS / f"werewolf-{arm}-seed{seed}"
    return found


def policy(arm: str, seed: int, stage: str) -> Agent:
    """Return the policy of a run before or after its training."""
    model = random_policy(WEREWOLF) if stage == "before" else trained(WEREWOLF, folder_of(arm, seed))
    agent: Agent = FactsAgent(WEREWOLF, model, "held-out", stage, seed)
    return agent


def played(arm: str, seed: int, stage: str, opponent: str) -> Won:
    """Let a policy play all deals, unless the games are there; those against several policies are shared out."""
    target = folder_of(arm, seed) / "games" / f"{stage}-{opponent.replace(' ', '-')}.json"
    if not target.exists():
        games, learner = Games(), policy(arm, seed, stage)
        won: Won = {side: [0] * DEALS for side in SIDES}
        others = [other for other in SEEDS if other != seed] if opponent == PEERS else [seed]
        for index, other in enumerate(others):
            deals = range(index, DEALS, len(others))
            against = policy(arm, other, "after") if opponent == PEERS else opponent
            for side, found in games.play(learner, against, deals).items():
                won[side][index :: len(others)] = found
        target.parent.mkdir(exist_ok=True)
        write_json(target, won)
    stored: Won = json.loads(target.read_text("utf8"))
    return stored


def evaluated(arm: str) -> dict[str, Any]:
    """Return opponent -> side -> gains over the warm-up, and the gain against held-out opponents together."""
    won = {key: played(arm, *key) for key in product(SEEDS, STAGES, OPPONENTS)}

    def table(stage: str, opponents: Sequence[str], sides: Sequence[str]) -> dict[int, list[float]]:
        """Return training seed -> share won of each deal, averaged over opponents and sides."""
        found = {}
        for seed in SEEDS:
            columns = [won[seed, stage, opponent][side] for opponent in opponents for side in sides]
            found[seed] = [sum(values) / len(values) for values in zip(*columns, strict=True)]
        return found

    def compared(opponents: Sequence[str], sides: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = gains(table("before", opponents, sides), table("after", opponents, sides))
        return found

    return {
        "held_out": {
            "both": compared(HELD_OUT, SIDES),
            **{side: compared(HELD_OUT, (side,)) for side in SIDES},
        },
        "against": {opponent: {side: compared((opponent,), (side,)) for side in SIDES} for opponent in OPPONENTS},
    }


def reference() -> dict[str, Any]:
    """Return what players and the oracle win: player -> opponent -> side -> share with its interval."""
    games, opponents = Games(), ("random", "rule_based", "ballot_reader")
    found: dict[str, Any] = {}
    for name in (*opponents, ORACLE):
        for opponent in opponents:
            won = games.play(games.agent(name), opponent, range(DEALS))
            found.setdefault(name, {})[opponent] = {side: interval([values]) for side, values in won.items()}
    return found


def costs(arm: str) -> dict[str, Any]:
    """Return how much each run of an arm played, and how its last iterations went."""
    found = {}
    for seed in SEEDS:
        records = RunFolder(folder_of(arm, seed)).metrics()
        found[str(seed)] = {
            "games": len(records) * config_of(arm, seed).rollout.groups,
            "turns": records[-1]["turns_total"],
            "entropy": [records[0]["policy/entropy_sampled"], records[-1]["policy/entropy_sampled"]],
            "matching": {key: value for key, value in records[-1].items() if key.startswith("self_play/")},
        }
    return found


def picture(arms: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the shares won before and after, by opponent and side."""
    figure = Figure(figsize=(1.6 * SIZE[0], SIZE[1]), layout="constrained")
    panels = figure.subplots(1, len(arms) * 2, sharey=True, squeeze=False)[0]
    for panel, (arm, side) in zip(panels, product(arms, SIDES), strict=True):
        for number, stage in enumerate(STAGES):
            found = [arms[arm]["against"][opponent][side][stage] for opponent in OPPONENTS]
            means = [100 * each["mean"] for each in found]
            errors = [[100 * abs(each["mean"] - each[end]) for each in found] for end in ("low", "high")]
            places = [index + 0.36 * (number - 0.5) for index in range(len(OPPONENTS))]
            panel.bar(places, means, 0.34, yerr=errors, color=(VERMILION, BLUE)[number], label=f"{stage} training")
        panel.set(title=f"{arm}, as {side}", ylim=(0, 100))
        panel.set_xticks(range(len(OPPONENTS)), OPPONENTS, rotation=30)
    panels[0].set(ylabel="% of games won")
    panels[0].legend(fontsize=7)
    FigureCanvasAgg(figure)
    figure.savefig(RESULTS / "werewolf_self_play.png", dpi=PIXELS_PER_INCH)


def in_percent(found: Mapping[str, float]) -> str:
    """Return a share with its interval."""
    return f"{100 * found['mean']:5.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"


def main() -> int:
    """Run what is missing, print tables, write ``benchmarks/results/werewolf_self_play.json`` and the picture."""
    wanted = sys.argv[1:] or list(MATCHES)
    if unknown := set(wanted) - set(MATCHES):
        print(f"no arm {', '.join(sorted(unknown))}: choose of {', '.join(MATCHES)}.", file=sys.stderr)
        return 2
    arms: dict[str, Any] = {}
    for arm in wanted:
        for seed in SEEDS:
            train(WEREWOLF, config_of(arm, seed), folder_of(arm, seed))
        arms[arm] = {"settings": config_of(arm, 0).as_json(), **evaluated(arm), "runs": costs(arm)}
    write_results("werewolf_self_play", {"deals": DEALS, "arms": arms, "reference": reference()})
    picture(arms)
    for arm, found in arms.items():
        for name, each in found["held_out"].items():
            print(f"{arm}, held-out opponents, {name}: gain {in_percent(each['gain'])}")
        for opponent, side in product(OPPONENTS, SIDES):
            each = found["against"][opponent][side]
            print(f"{arm} as {side:10} against {opponent}: {in_percent(each['before'])} -> {in_percent(each['after'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
