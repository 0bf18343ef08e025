"""Rules about tasks, splits and the expert."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from turngym.envs.checks.case import Case, Env, begin, inner, step, turn_limit
from turngym.envs.checks.repeat import REUSABLE
from turngym.envs.checks.rule import Finding, Skipped, excerpts, raised, rule
from turngym.errors import ConfigError

_EXPERT_EPISODES = 10
_TASKS = 3
_SPLIT_SEEDS = 12


@dataclass(slots=True)
class _Expert:
    """Behaviour of the expert in some episodes."""

    impure: list[Finding] = field(default_factory=list)
    invalid: list[Finding] = field(default_factory=list)
    solved: int = 0


def _expert(case: Case) -> _Expert:
    """Return the expert's episodes, played once and cached.

    Raises:
        Skipped: There is no expert.
    """
    if "expert" not in case.facts:
        try:
            case.facts["expert"] = _play_expert(case)
        except ConfigError as error:
            case.facts["expert"] = Skipped(str(error))
    if isinstance(case.facts["expert"], Skipped):
        raise case.facts["expert"]
    return case.facts["expert"]  # type: ignore[no-any-return]


def _play_expert(case: Case) -> _Expert:
    found, env = _Expert(), case.env
    for seed in range(case.seeds[0], case.seeds[0] + _EXPERT_EPISODES):
        episode = begin(env, seed)
        while not episode.is_over and len(episode.turns) <= turn_limit(env):
            turn = len(episode.turns) - 1
            before = _visible_state(env)
            try:
                action, again = (env.get_wrapper_attr("expert_action")() for _ in range(2))
            except ConfigError:
                raise
            except Exception as error:  # the finding itself
                found.invalid.append(Finding(f"expert_action() raised {raised(error)}", seed, turn))
                return found
            if action != again:
                found.impure.append(Finding("asked twice, the expert says two things", seed, turn, action, again))
            after = _visible_state(env)
            if before != after:
                what = "asking the expert changes the environment"
                found.impure.append(Finding(what, seed, turn, *excerpts(before, after)))
                return found
            step(env, episode, action)
            if not episode.turns[-1].info.get("action_is_valid", True):
                found.invalid.append(Finding(f"the expert's action {action!r} is not valid", seed, turn))
        found.solved += episode.turns[-1].info.get("success") == 1
    return found


def _visible_state(env: Env) -> str:
    """Return as text what calling the expert must not change."""
    unwrapped = inner(env)
    return f"{unwrapped.turn} {unwrapped.anchor()} {unwrapped.np_random.bit_generator.state}"


@rule(
    "expert-pure",
    "Asking for the expert's action changes nothing, and asking twice gives the same.",
    why="Demonstrations, hints and baselines ask in the middle of episodes that must go on as if nobody had asked.",
    fix="Compute expert_action from the state without changing it, and break ties by order, not by self.np_random.",
)
def expert_pure(case: Case) -> Iterator[Finding]:
    """Calling the expert changes nothing."""
    yield from _expert(case).impure[:1]


@rule(
    "expert-valid",
    "Every expert action is valid.",
    why="Demonstrations with invalid actions teach a policy to write them.",
    fix="Return the text of an action that apply_action() understands in this state; raise nothing.",
    after=("expert-pure",),
)
def expert_valid(case: Case) -> Iterator[Finding]:
    """The expert's actions are valid."""
    yield from _expert(case).invalid[:1]


@rule(
    "expert-solves",
    f"The expert solves at least one of {_EXPERT_EPISODES} tasks.",
    why="The expert is the upper end of every normalised result, and the proof that the tasks can be solved.",
    fix="Compare the expert's moves with the rules on one seed by hand (`turngym play ID --agent expert --seed 0`); "
    "see that max_turns suffices and that Outcome says success=True.",
    after=("info-complete", "info-values", "expert-pure", "expert-valid"),
)
def expert_solves(case: Case) -> Iterator[Finding]:
    """The expert solves its tasks."""
    if not _expert(case).solved:
        yield Finding(f"the expert solved none of {_EXPERT_EPISODES} episodes", case.seeds[0])


@rule(
    "instance-named",
    "self.instance is the canonical text of the task: never empty, and equal only where the task is equal.",
    why="Splits, evaluation without repetition and task statistics all go by the hash of this text.",
    fix="Store the text in begin(), or draw with self.draw(), which stores it and keeps to the split.",
    after=REUSABLE,
)
def instance_named(case: Case) -> Iterator[Finding]:
    """Different instances have different names."""
    seen: dict[str, tuple[int, str]] = {}
    for seed in range(case.seeds[0], case.seeds[0] + _SPLIT_SEEDS):
        episode = begin(case.env, seed)
        if not isinstance(episode.instance, str) or not episode.instance:
            yield Finding(f"self.instance must be a string that is not empty, got {episode.instance!r}", seed, 0)
            return
        first = seen.setdefault(episode.instance, (seed, episode.texts[0]))
        if first[1] != episode.texts[0]:
            what = f"seeds {first[0]} and {seed} have the same self.instance and begin differently"
            yield Finding(what, seed, 0, *excerpts(first[1], episode.texts[0]))
            return


@rule(
    "tasks-bind",
    'reset(options={"task": name}) picks the same instance whatever the seed.',
    why="Evaluation on a data set names its tasks; two runs must mean the same by one name.",
    fix="Let everything that makes up the instance depend on the task that begin() is given.",
    after=REUSABLE,
)
def tasks_bind(case: Case) -> Iterator[Finding]:
    """A task name always gives the same task."""
    tasks = case.env.get_wrapper_attr("tasks")()
    if not tasks:
        raise Skipped("there is no list of tasks")
    for task in tasks[:_TASKS]:
        names = []
        for seed in (case.seeds[0], case.seeds[0] + 1, case.seeds[0] + 2):
            case.env.reset(seed=seed, options={"task": task})
            names.append(inner(case.env).instance)
        if len(set(names)) > 1:
            yield Finding(f"task {task!r} is another instance with another seed", case.seeds[0], 0, *names[:2])


@rule(
    "splits-disjoint",
    "No instance belongs to two splits.",
    why="A test task that was trained on makes the result look better than it is.",
    fix="Draw instances with self.draw(), or give each split tasks of its own; a game with too few instances for "
    "splits declares finite_instances.",
    after=(*REUSABLE, "instance-named"),
)
def splits_disjoint(case: Case) -> Iterator[Finding]:
    """Each instance has one split."""
    own = inner(case.env)
    if own.finite_instances is not None:
        raise Skipped(f"finite_instances={own.finite_instances}: every split draws from all of them")
    found: dict[str, tuple[str, int]] = {}
    for split in own.splits:
        env = case.env if split == own.split else case.make(split=split)
        for seed in range(case.seeds[0], case.seeds[0] + _SPLIT_SEEDS):
            env.reset(seed=seed)
            instance = inner(env).instance
            other, other_seed = found.setdefault(instance, (split, seed))
            if other != split:
                what = f"the instance {instance[:60]!r} of {other} (seed {other_seed}) belongs to {split} too"
                yield Finding(what, seed, 0)
                return
