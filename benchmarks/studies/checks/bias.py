"""The expected gradient of every training method, by enumeration, beside the gradient of its objective.

    python benchmarks/studies/checks/bias.py            # measure, and write the pages of the methods
    python benchmarks/studies/checks/bias.py mmd        # only this method
    python benchmarks/studies/checks/bias.py --parts    # only what methods share
    python benchmarks/studies/checks/bias.py --pages    # only the pages

Every episode of a tiny environment is listed with its exact probability (``expected_gradients/world.py``), every batch
goes through the code that training runs (``expected_gradients/gradients.py``), and what stands between a method and its
objective is taken away reason by reason until the two gradients agree to 1e-9 (``expected_gradients/methods.py``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any, Literal, TypeAlias

import torch

from turngym.benchmarks.studies.checks.expected_gradients.gradients import (
    Arm,
    Batches,
    Figure,
    Objective,
    branched,
    expected_gradient,
    large_batch,
    one_group,
)
from turngym.benchmarks.studies.checks.expected_gradients.methods import BASES, CASES, Case, Class, Step
from turngym.benchmarks.studies.checks.expected_gradients.pages import RESULT, write_pages
from turngym.benchmarks.studies.checks.expected_gradients.parts import PARTS, Part
from turngym.benchmarks.studies.checks.expected_gradients.world import Rules
from turngym.benchmarks.studies.harness import arguments
from turngym.storage.files import write_json
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Need

Kind: TypeAlias = Literal["one_group", "large_batch"]
KINDS: tuple[Kind, ...] = ("one_group", "large_batch")


def arm_of(name: str, steps: Iterable[Step] = (), *, in_limit: bool = False) -> Arm:
    """Return a method, by itself or around its base, without the reasons of some steps."""
    case = CASES[name]
    own, rules, is_exact = {**case.settings, **(case.in_limit if in_limit else {})}, Rules(), False
    for step in steps:
        own |= step.settings
        rules = replace(rules, **dict.fromkeys(step.rules, True))
        is_exact |= step.exact_critic
    return Arm(
        f"{case.base}+{name}" if case.base else name,
        {name: own, **({case.base: BASES[case.base]} if case.base else {})},
        rules,
        exact_critic=is_exact,
        collects=case.collects,
        state=case.state,
    )


def _objective_of(algorithm: Algorithm[Any], case: Case) -> Objective:
    """Return what a method maximises with its settings, those of its base included."""
    found: dict[str, float] = {}
    while True:
        read = {
            "penalty": "invalid_penalty",
            "reward_divergence": "reward_kl_coef",
            "divergence": "kl_coef",
            "entropy": "entropy_coef",
            "discount": case.discount,
        }
        if isinstance(algorithm, Modifier):
            read |= case.weights
        for key, setting in read.items():
            found[key] = getattr(algorithm.config, setting, found.get(key, getattr(Objective(), key)))
        if not isinstance(algorithm, Modifier):
            return Objective(**{**found, **case.objective})
        algorithm = algorithm.base


@cache
def batches(kind: Kind, rules: Rules, size: int = 2, is_ordered: bool = False) -> Batches:
    """Return the batches that an expectation is taken over."""
    return large_batch(rules, size) if kind == "large_batch" else one_group(rules, size, is_ordered=is_ordered)


def figure(name: str, kind: Kind, steps: Sequence[Step] = ()) -> Figure:
    """Measure a method without the reasons of some steps.

    Where a batch is large, its groups make no difference to methods that do not compare the episodes of a group.
    """
    case, arm = CASES[name], arm_of(name, steps, in_limit=kind == "large_batch")
    algorithm = arm.made()
    size = 1 if kind == "large_batch" and Need.GROUPS not in algorithm.needs else 2
    found = expected_gradient(algorithm, arm, batches(kind, arm.rules, size, is_ordered=case.is_ordered))
    return Figure.of(found, _objective_of(algorithm, case).gradient(arm.rules))


def expectation(name: str, steps: Sequence[Step]) -> Figure:
    """Measure a method in the smallest batches that there are: one episode if it compares none, else one group."""
    arm = arm_of(name, steps)
    algorithm = arm.made()
    is_compared = Need.GROUPS in algorithm.needs or arm.rules.is_single
    found = expected_gradient(algorithm, arm, batches("one_group", arm.rules, 2 if is_compared else 1))
    return Figure.of(found, _objective_of(algorithm, CASES[name]).gradient(arm.rules))


def _class_of(one: Figure, large: Figure) -> Class:
    """Return the class of a method from its figures at default settings."""
    if one.is_exact:
        return "unbiased" if one.is_equal else "proportional"
    return "vanishing" if large.is_exact else "biased"


def measured(name: str) -> dict[str, Any]:
    """Return everything about one method: at its defaults, then without one reason after another."""
    case, arm = CASES[name], arm_of(name)
    chain = [{kind: figure(name, kind, case.steps[:count]) for kind in KINDS} for count in range(len(case.steps) + 1)]
    return {
        "class": _class_of(chain[0]["one_group"], chain[0]["large_batch"]),
        "algorithm": arm.algorithm,
        "settings": {**case.settings, **BASES.get(case.base, {})},
        "objective": asdict(_objective_of(arm.made(), case)),
        "defaults": _rounded(chain[0]),
        "steps": [
            {"reason": step.reason, "without": without(step), **_rounded(figures)}
            for step, figures in zip(case.steps, chain[1:], strict=True)
        ],
        "is_explained": chain[-1]["one_group"].is_exact,
        "note": case.note,
    }


def without(step: Step) -> str:
    """Return what takes a reason away, as pages write it."""
    found = [
        f"`{name}={str(value).lower() if isinstance(value, bool) else value}`" for name, value in step.settings.items()
    ]
    found += [_WORDS_OF[rule] for rule in step.rules]
    return ", ".join([*found, *(["an exact critic"] if step.exact_critic else [])])


_WORDS_OF = {
    "is_binary": "returns of 0 and 1",
    "is_single": "episodes of one token",
    "is_timed": "anchors that tell the turn",
}


def _rounded(figures: dict[Kind, Figure]) -> dict[str, dict[str, float]]:
    return {
        kind: {key: float(f"{value:.6g}") for key, value in each._asdict().items()} for kind, each in figures.items()
    }


def _measured_part(part: Part) -> dict[str, Any]:
    """Return one row of the tables about parts of methods."""
    arm, found = part.arm, {}
    for kind in KINDS if part.in_limit else KINDS[:1]:
        if part.is_branched:
            listed = branched(arm.rules)
        elif kind == "large_batch":
            listed = large_batch(arm.rules, part.size)
        else:
            listed = one_group(arm.rules, part.size, sampler=arm.sampler)
        gradient = expected_gradient(arm.made(), arm, listed)
        if part.less is not None:
            gradient = gradient - expected_gradient(part.less.made(), part.less, listed)
        found[kind] = Figure.of(gradient, part.objective.gradient(arm.rules))
    return {"part": part.name, **_rounded(found)}


def measure(names: Sequence[str], tables: Sequence[str]) -> list[str]:
    """Measure some methods and tables, keep the other figures; returns the methods that are not as their case says."""
    former = json.loads(RESULT.read_text("utf8")) if RESULT.exists() else {"methods": {}, "parts": {}}
    found = {name: measured(name) for name in names}
    parts = {table: [_measured_part(part) for part in PARTS[table]] for table in tables}
    content = {
        "what": "expected gradients by enumeration of a tiny environment, beside those of the objectives",
        "command": "python benchmarks/studies/checks/bias.py",
        "methods": {name: each for name, each in sorted({**former["methods"], **found}.items()) if name in ALGORITHMS},
        "parts": {**former["parts"], **parts},
    }
    write_json(RESULT, content)
    return [name for name, each in found.items() if each["class"] != CASES[name].expected or not each["is_explained"]]


def main(argv: Sequence[str]) -> int:
    """Measure methods and write the pages; the exit status is 1 if a method is not what its case says."""
    parser = arguments(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="methods; all unless given")
    parser.add_argument("--parts", action="store_true", help="only the tables about what methods share")
    parser.add_argument("--pages", action="store_true", help="only write the pages from the figures as they are")
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.names) - set(CASES)):
        parser.error(f"no case for {', '.join(unknown)}: add it to CASES of expected_gradients/methods.py.")
    torch.set_num_threads(1)
    names = options.names or ([] if options.parts else sorted(ALGORITHMS))
    wrong = [] if options.pages else measure(names, [] if options.names else list(PARTS))
    if wrong:
        print(f"not in their class, or with a bias that no reason names: {', '.join(wrong)}")
        return 1
    write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
