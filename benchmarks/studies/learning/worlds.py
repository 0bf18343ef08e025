"""The embedded model in the worlds that papers report on: success on test instances before and after training.

    python benchmarks/studies/learning/worlds.py                    # every world
    python benchmarks/studies/learning/worlds.py household webshop  # these

Arms, written down before they ran; the size of all but alfworld was settled after short trials of
the warm-up on dev instances. For each world and seed the embedded model imitates the expert
until sampled play succeeds on 20 % of a hundred dev instances, or for all the epochs that are named below; every arm
goes on from there. One torch thread, three seeds, at most eight minutes a run and two runs at a time; finished runs are
kept, broken-off ones go on. Before and after are success rates of sampled play on the same test instances. An arm
improves if the 95 % interval of after less before over the seeds (paired by seed, Student's t) lies above 0, it does
not if it lies below 0, and is undecided otherwise.

- household: a thing to find and carry among four receptacles, in twelve turns, with gigpo and with grpo and EPO.
- searchqa: questions that one of the 20,000 documents of a generated world answers, in four turns with one passage a
  search, with ppo (its clipping bias corrected, as ST-PPO does) and with gigpo, each with the answer's reward alone and
  with StepSearch's rewards of single searches. Names must be copied, so spaces are tokens of their own and the warm-up
  also learns to predict what it reads. (In worlds of 2,000 documents or fewer, written down first, and without these
  two, trials of the warm-up ended at 0 to 3 %: the model learnt names by heart instead of copying them. A first run
  of seed 0 with the other worlds' step size gained nothing with gigpo and lost with ppo; a third of it, tried for 8,000
  turns on dev instances with both, was taken for all.)
- webshop: buying what a customer asks for in a generated shop of 50 products, actions chosen by number, with gigpo.
  (Spelt-out actions, written down first, were given up after a trial: searches for words that nobody had said.)
- website: finding an issue and setting its priority and assignee, as text without a browser, with gigpo. (Setting a
  price and a stock, written down first, was given up after a trial: no success, numbers were made up.)
- alfworld: ALFWorld's own games of the kind pick and place, from the data set that ALFWORLD_DATA names, in twenty
  turns (papers allow fifty), with gigpo.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from run_queue import RESULTS, RUNS, mean_and_range, run_all, summary, with_settings_of_0_1_0, write_results
from verdicts import CHANGE, SEEDS, difference, in_points
from warmups import folder_of, warm_up_all

from turngym.storage.files import write_atomic
from turngym.trainers.report.curve import write_curves

COMMON = (
    *("--preset", "quickstart", "--no-control", "--max-seconds", "480"),
    *("--rollout.format", "plain", "--rollout.groups", "16"),
)
RATE = ("--update.learning-rate", "0.0006")
CONVERSATION = ("--rollout.prompt.mode", "conversation")
STEPS = "step_reward=0.6"
SEARCH = ("kind=1 hop", "size=20000", "top_k=1", "passage_words=40", "max_turns=4")
COPYING = ("--embedded.words-apart", "--warmup.observation-weight", "0.3")
ENOUGH = 0.2
"""Dev success at which a warm-up ends: room to improve, and episodes to learn from."""


class World(NamedTuple):
    """A world and what is trained in it.

    Args:
        title: Stands above the picture.
        settings: Environment, prompts, warm-up and learning rate of all runs.
        turns: Environment turns of a run.
        arms: Arm -> its own options.
        claims: Pairs of arms, the first of which may be expected to end up higher.
    """

    title: str
    settings: Sequence[str]
    turns: int
    arms: Mapping[str, Sequence[str]]
    claims: Sequence[tuple[str, str]] = ()


def options(*pairs: str) -> tuple[str, ...]:
    """Return the options of the environment as options of ``turngym train``."""
    return ("--env-options", *pairs)


def sizes(demonstrations: int, epochs: int, vocabulary: int, completion: int) -> tuple[str, ...]:
    """Return the options of a warm-up with at most so many epochs, and of the lengths that go with a world."""
    return (
        *("--warmup.demonstrations", str(demonstrations), "--warmup.epochs", str(epochs), "--warmup.batch-size", "8"),
        *("--embedded.vocabulary", str(vocabulary), "--rollout.max-new-tokens", str(completion), *RATE),
    )


WORLDS: Mapping[str, World] = {
    "household": World(
        "Household, four receptacles",
        (
            *("--env", "turngym/HouseholdEasy-v0", *options("receptacles=4", "distractors=0", "max_turns=12")),
            *(*CONVERSATION, *sizes(1500, 6, 640, 10)),
        ),
        25_000,
        {"gigpo": ("--algorithm", "gigpo"), "grpo+epo": ("--algorithm", "grpo+epo")},
    ),
    "searchqa": World(
        "SearchQA, one hop in a world of 20,000 documents",
        (
            *("--env", "turngym/SearchQA-v0", *options(*SEARCH), *CONVERSATION, *COPYING, *sizes(10_000, 6, 512, 32)),
            *("--update.learning-rate", "0.0002", "--update.critic-learning-rate", "0.0005"),
        ),
        14_000,
        {
            "ppo+st_ppo": ("--algorithm", "ppo+st_ppo"),
            "ppo+st_ppo, step rewards": ("--algorithm", "ppo+st_ppo", *options(*SEARCH, STEPS)),
            "gigpo": ("--algorithm", "gigpo"),
            "gigpo, step rewards": ("--algorithm", "gigpo", *options(*SEARCH, STEPS)),
        },
        (("ppo+st_ppo, step rewards", "ppo+st_ppo"), ("gigpo, step rewards", "gigpo")),
    ),
    "webshop": World(
        "WebShop, 50 products, actions by number",
        (
            *("--env", "turngym/WebShop-v0", *options("products=50", "max_turns=8"), "--wrapper", "choices"),
            *sizes(400, 3, 1024, 4),
        ),
        10_000,
        {"gigpo": ("--algorithm", "gigpo")},
    ),
    "website": World(
        "WebSite, priority and assignee of an issue",
        (
            *("--env", "turngym/WebSite-v0", *options("site=issues", "kind=triage", "worlds=8", "max_turns=10")),
            *sizes(500, 4, 1024, 12),
        ),
        15_000,
        {"gigpo": ("--algorithm", "gigpo")},
    ),
    "alfworld": World(
        "ALFWorld, pick and place",
        (
            *("--env", "turngym/ALFWorld-v0"),
            *options("kind=pick_and_place_simple", "expert=explorer", "max_turns=20"),
            *(*CONVERSATION, *sizes(790, 8, 1024, 14), "--rollout.groups", "8"),
            *("--evaluation.episodes", "24", "--evaluation.curve-episodes", "35"),
        ),
        12_000,
        {"gigpo": ("--algorithm", "gigpo")},
    ),
}
"""World -> what is trained in it."""


def slug(arm: str) -> str:
    """Return the name of an arm as a part of a folder's name.

    >>> slug("gigpo, step rewards")
    'gigpo-step-rewards'
    """
    return arm.replace(",", "").replace(" ", "-")


def warmups(name: str) -> dict[str, list[str]]:
    """Return the name of the warm-up of each seed with its options."""
    return {f"world-{name}-warmup-seed{seed}": [*_settings(name), "--seed", str(seed)] for seed in SEEDS}


def _settings(name: str) -> list[str]:
    return [*COMMON, *WORLDS[name].settings]


def arms(name: str) -> dict[str, list[str]]:
    """Return the name of every run of a world with its options."""
    world = WORLDS[name]
    found = {}
    for seed in SEEDS:
        model = folder_of(f"world-{name}-warmup-seed{seed}")
        for arm, own in world.arms.items():
            limits = ("--max-environment-turns", str(world.turns), "--evaluation.every", "5", "--seed", str(seed))
            found[run_name(name, arm, seed)] = [
                *_settings(name),
                "--model",
                str(model),
                *limits,
                *with_settings_of_0_1_0(own),
            ]
    return found


def run_name(name: str, arm: str, seed: int) -> str:
    """Return the folder of a run."""
    return f"world-{name}-{slug(arm)}-seed{seed}"


def run_world(name: str) -> dict[str, Any]:
    """Run what is missing of a world; draw its curves and return its figures."""
    world = WORLDS[name]
    imitated = warm_up_all(warmups(name), ENOUGH)
    folders = run_all(arms(name))
    runs = {run: summary(folder) for run, folder in folders.items()}
    by_arm = {arm: [folders[run_name(name, arm, seed)] for seed in SEEDS] for arm in world.arms}
    write_curves(by_arm, RESULTS / f"worlds-{name}.png", world.title)
    before, after = (
        {arm: _success(name, arm, runs, f"{stage}-sampled") for arm in world.arms} for stage in ("warmup", "final")
    )
    return {
        "command": f"python benchmarks/studies/learning/worlds.py {name}",
        "warmups": imitated,
        "arms": arms(name),
        "before": before,
        "after": after,
        "change": {arm: difference(after[arm], before[arm], CHANGE) for arm in world.arms},
        "claims": {f"{first} > {second}": difference(after[first], after[second]) for first, second in world.claims},
        "runs": runs,
    }


def _success(name: str, arm: str, runs: Mapping[str, Any], evaluation: str) -> list[float]:
    """Return the success on test instances in one evaluation of an arm's runs, a value a seed."""
    mine = [runs[run_name(name, arm, seed)]["evaluations"] for seed in SEEDS]
    return [each[evaluation]["success"]["value"] for each in mine]


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return Markdown tables: success of every arm before and after, and the comparisons of arms."""
    lines = [
        "Success on test instances, mean of three seeds (smallest to largest); the change is that of sampled play.",
        "",
        "| arm | after warm-up, % | after training, % | change, points [95 %] | | greedy before | greedy after |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        for arm, change in result["change"].items():
            before, after = mean_and_range(result["before"][arm]), mean_and_range(result["after"][arm])
            greedy = [
                mean_and_range(_success(name, arm, result["runs"], f"{stage}-greedy")) for stage in ("warmup", "final")
            ]
            figures = f"{before} | {after} | {in_points(change)} | {change['verdict']} | {' | '.join(greedy)}"
            lines.append(f"| {name}: {arm} | {figures} |")
    lines += ["", "| comparison | difference after training, points [95 %] | verdict |", "|---|---|---|"]
    for name, result in results.items():
        for claim, found in result["claims"].items():
            lines.append(f"| {name}: {claim} | {in_points(found)} | {found['verdict']} |")
    return "\n".join(lines) + "\n"


def written_results() -> dict[str, dict[str, Any]]:
    """Return what the result files of all worlds hold that have run."""
    files = {name: RESULTS / f"worlds-{name}.json" for name in WORLDS}
    return {name: json.loads(path.read_text("utf8")) for name, path in files.items() if path.exists()}


def main() -> int:
    """Run the worlds named, or all; write ``worlds-X.json`` for each and ``worlds.md`` for all that ever ran."""
    wanted = sys.argv[1:] or list(WORLDS)
    unknown = [name for name in wanted if name not in WORLDS]
    if unknown:
        print(f"there is no world {unknown[0]!r}: take some of {' '.join(WORLDS)}", file=sys.stderr)
        return 2
    broken = []
    for name in wanted:
        try:
            write_results(f"worlds-{name}", run_world(name))
        except subprocess.CalledProcessError as error:  # the other worlds shall run all the same
            broken.append(name)
            print(f"a run of {name} failed: {error}; see the log beside its folder in {RUNS}", file=sys.stderr)
        write_atomic(RESULTS / "worlds.md", page(written_results()).encode())
    print(page(written_results()))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
