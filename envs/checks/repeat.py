"""Rules about reproducibility: equal seeds give equal episodes, in this process and in others."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np

from turngym.envs.checks.case import Case, Env, begin, canonical, inner, record, replay, step
from turngym.envs.checks.diagnosis import here, there
from turngym.envs.checks.elsewhere import PLAIN, Setting, elsewhere
from turngym.envs.checks.rule import Finding, Skipped, difference, excerpts, rule

_DRAWS = 12
_OTHER = 7
_UNLIKELY = 20_240_607
REPEATABLE = ("expert-pure", "no-global-random", "no-clock", "copies-isolated", "seed-repeats")
"""Preconditions for comparing episodes of two copies."""

REUSABLE = (*REPEATABLE, "seed-binds", "reset-forgets")
"""Preconditions for comparing episodes of one copy."""

_FRAMEWORK = ("turngym.envs.core", "turngym.envs.pictures", "gymnasium.core", "builtins", "typing", "abc")


def _author_classes(env: Env) -> Iterator[type]:
    """Yield the classes of an environment and its wrappers that are not the framework's."""
    layers = [env]
    while isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    for layer in layers:
        yield from (kind for kind in type(layer).__mro__ if kind.__module__ not in _FRAMEWORK)


def generators(env: Env) -> dict[str, Any]:
    """Return name -> generator for the generators that all copies share: those of modules and classes."""
    found: dict[str, Any] = {}
    for kind in _author_classes(env):
        places = {kind.__module__: vars(sys.modules.get(kind.__module__, object)), kind.__qualname__: vars(kind)}
        for place, names in places.items():
            for name, value in dict(names).items():
                if isinstance(value, np.random.Generator | np.random.RandomState | random.Random):
                    found[f"{place}.{name}"] = value
    return found


def generator_state(generator: Any) -> str:
    """Return the state of a generator of NumPy or of ``random`` as text."""
    if isinstance(generator, np.random.Generator):
        return canonical(generator.bit_generator.state)
    state = generator.get_state() if isinstance(generator, np.random.RandomState) else generator.getstate()
    return canonical(list(state))


def _global_states() -> dict[str, str]:
    states = {"random": canonical(random.getstate()), "np.random": canonical(list(np.random.get_state()))}
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = str(bytes(torch.get_rng_state().numpy().tobytes()))
    return states


@rule(
    "no-global-random",
    "No random number comes from a generator that is shared: random, np.random, one of a module or a class.",
    why="Whatever else draws from it in the process then changes the episode: equal seeds give unequal tasks, group "
    "members differ, and no result can be repeated.",
    fix="Draw from self.np_random, which reset(seed=...) seeds: self.np_random.integers(6), not random.randrange(6).",
)
def no_global_random(case: Case) -> Iterator[Finding]:
    """Shared generators stay where they are."""
    shared = generators(case.env)
    saved = random.getstate(), np.random.get_state()
    random.seed(_UNLIKELY)  # otherwise an environment that seeds them would leave them unchanged
    np.random.seed(_UNLIKELY)
    try:
        before = _global_states() | {name: generator_state(found) for name, found in shared.items()}
        replay(case.make(), case.first.seed, case.first.actions)
        after = _global_states() | {name: generator_state(found) for name, found in shared.items()}
    finally:
        random.setstate(saved[0])
        np.random.set_state(saved[1])
    for name in before:
        if before[name] != after[name]:
            yield Finding(f"the shared generator {name} has moved during an episode", case.first.seed)


def _where(case: Case, cause: str) -> Iterator[Finding]:
    """Yield the differences with a given cause, here or in another process."""
    diagnosis = here(case) if here(case).cause else there(case)
    if diagnosis.cause == cause and diagnosis.found is not None:
        yield diagnosis.found


@rule(
    "no-clock",
    "The time of day, the date and how long a step takes change nothing.",
    why="The same seed shows another episode tomorrow, on a slower machine, or in the next member of a group.",
    fix="Leave time and datetime out of rules and texts; where a story needs a date, draw it from self.np_random.",
    after=("expert-pure", "no-global-random"),
)
def no_clock(case: Case) -> Iterator[Finding]:
    """Episodes do not depend on the clock."""
    yield from _where(case, "no-clock")


@rule(
    "copies-isolated",
    "Copies share no state: what one does changes nothing for another.",
    why="A vector plays many copies in one process; if they share a list, every slot disturbs the others.",
    fix="Set attributes in __init__ or begin(), not in the class body: a list there belongs to all copies.",
    after=("expert-pure", "no-global-random", "no-clock"),
)
def copies_isolated(case: Case) -> Iterator[Finding]:
    """Two interleaved copies behave as each does alone."""
    if here(case).cause == "copies-isolated" and (found := here(case).found):
        yield found
    if here(case).cause:
        return
    one, other = case.recorded[0], case.recorded[-1]
    alone = [
        [replay(env, episode.seed, episode.actions) for _ in range(2)]
        for env, episode in ((case.env, one), (case.kept("second"), other))
    ]
    if any(first != second for first, second in alone):
        return  # a copy does not repeat itself even alone: reset-forgets says why
    ours, theirs = begin(case.env, one.seed), begin(case.kept("second"), other.seed)
    for number in range(max(len(one.actions), len(other.actions))):
        if number < len(one.actions) and not ours.is_over:
            step(case.env, ours, one.actions[number])
        if number < len(other.actions) and not theirs.is_over:
            step(case.kept("second"), theirs, other.actions[number])
        if number == 1:
            case.make().reset(seed=case.seeds[-1] + _OTHER)
    what = "with another copy playing in between, the episode differs"
    yield from difference(what, alone[0][0], ours.texts, one.seed)
    yield from difference(what, alone[1][0], theirs.texts, other.seed)


@rule(
    "seed-repeats",
    "Two copies that are reset with one seed show the same episode for the same actions.",
    why="Group advantages compare episodes of one task; if the seed does not fix the task, they compare noise.",
    fix="Take every random number from self.np_random, in an order that depends on nothing else. Look for "
    "default_rng() without a seed, os.urandom, uuid, secrets, id() and object addresses in texts.",
    after=("expert-pure", "no-global-random", "no-clock", "copies-isolated"),
)
def seed_repeats(case: Case) -> Iterator[Finding]:
    """Two copies with equal seeds give equal episodes."""
    if here(case).cause == "seed-repeats" and (found := here(case).found):
        yield found


@rule(
    "no-hash-order",
    "The order of a set, or anything else that depends on the hash of a text, changes nothing.",
    why="Each Python process orders sets of texts differently: workers and reruns then show other episodes, while "
    "every test in one process passes.",
    fix="Sort before you list, draw from or print a set: sorted(words); and never use hash() of a text.",
    after=REPEATABLE,
)
def no_hash_order(case: Case) -> Iterator[Finding]:
    """Episodes do not depend on the hash seed."""
    yield from _where(case, "no-hash-order")


@rule(
    "same-in-other-process",
    "Another process shows the same episodes.",
    why="Vectors with processes, evaluation on another machine and a resumed run all play in fresh processes.",
    fix="Keep process ids, addresses, the current folder and what was played before out of rules and texts; the "
    "environment and what it is made from must be importable, or pickled by value.",
    after=REPEATABLE,
)
def same_in_other_process(case: Case) -> Iterator[Finding]:
    """A fresh process gives the same episodes."""
    yield from _where(case, "same-in-other-process")


@rule(
    "no-environment-variables",
    "Environment variables change nothing in an episode.",
    why="Two machines with the same code, options and seed then play different games, and no file says so.",
    fix="Make it an option of the constructor, so that it is part of settings, snapshots and transcripts.",
    after=(*REPEATABLE, "no-hash-order", "same-in-other-process"),
)
def no_environment_variables(case: Case) -> Iterator[Finding]:
    """Episodes do not depend on the variables that the author's modules read."""
    if there(case).cause:
        return
    processes = elsewhere(case)
    plain = processes.run(PLAIN)
    if not plain.variables:
        return
    other = processes.run(Setting(PLAIN.hash_seed, variables=tuple(plain.variables)))
    names = ", ".join(plain.variables)
    if other.kind == "refused":
        raise Skipped(f"with another value of {names} it refuses to play, and says so: {other.error}")
    if other.error:
        yield Finding(f"with another value of {names}, playing raised {other.error}")
    what = f"with another value of {names} the episode differs"
    for episode, theirs in zip(case.recorded, other.episodes, strict=False):
        yield from difference(what, episode.texts, theirs, episode.seed)


@rule(
    "seed-varies",
    "Other seeds lead to other tasks, and so does a reset without a seed.",
    why="Training on a thousand seeds that are one task measures nothing but memory.",
    fix="Draw the task from self.np_random in begin(); a game of one single task declares finite_instances = 1.",
    after=REPEATABLE,
)
def seed_varies(case: Case) -> Iterator[Finding]:
    """Different seeds give different tasks."""
    env = case.env
    if inner(env).finite_instances == 1 or len(env.get_wrapper_attr("tasks")()) == 1:
        raise Skipped("there is one task only")
    seeded = {_instance(env, case.seeds[0] + number) for number in range(_DRAWS)}
    if seeded == {""}:
        raise Skipped("self.instance is empty, so tasks cannot be told apart")
    if len(seeded) == 1:
        yield Finding(f"{_DRAWS} seeds, from {case.seeds[0]} on, all lead to the same task: is the seed ignored?")
    env.reset(seed=case.seeds[0])
    if len({_instance(env, None) for _ in range(_DRAWS)}) == 1 < len(seeded):
        yield Finding(f"{_DRAWS} resets without a seed all lead to the same task: the generator must go on")


def _instance(env: Env, seed: int | None) -> str:
    env.reset(seed=seed)
    return inner(env).instance


@rule(
    "seed-binds",
    "reset(seed=...) decides the task, whatever was played before.",
    why="A group is one task played many times by reusing copies: if only the first seed counts, members differ.",
    fix="Do not override reset(), and do not keep a generator of your own: self.np_random is seeded by every "
    "reset(seed=...).",
    after=REPEATABLE,
)
def seed_binds(case: Case) -> Iterator[Finding]:
    """A used copy plays the task of the seed it is given."""
    env, first = case.env, case.first
    for name, use in (("a reset with another seed", first.seed), ("a reset without a seed", None)):
        env.reset(seed=None if use is None else use + _OTHER)
        instance = _instance(env, first.seed)
        if instance != first.instance:
            what = f"after {name}, the seed leads to another task"
            yield Finding(what, first.seed, 0, *excerpts(first.instance, instance))


@rule(
    "reset-forgets",
    "After reset() nothing is left of earlier episodes.",
    why="Text of the last task in the prompt of the next one is a leak between tasks that inflates results.",
    fix="Set every attribute of the episode anew in begin(), lists, caches and counters included.",
    after=(*REPEATABLE, "seed-binds"),
)
def reset_forgets(case: Case) -> Iterator[Finding]:
    """A used copy plays as a fresh one does, after a whole episode and after a part of one."""
    env, first = case.env, case.first
    assert first.seed is not None
    record(env, first.seed + _OTHER)
    again = replay(env, first.seed, first.actions)
    found = list(difference("after a whole other episode, the episode differs", first.texts, again, first.seed))
    if not found:
        other = begin(env, first.seed + _OTHER + 1)
        if first.actions:
            step(env, other, first.actions[0])
        again = replay(env, first.seed, first.actions)
        found = list(difference("after a part of another episode, it differs", first.texts, again, first.seed))
    yield from found
