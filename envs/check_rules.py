"""The promises of an environment, one function each: it yields a sentence for everything that is wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from gymnasium.error import ResetNeeded

from turngym.envs.check_case import Case, Env, Player, Skipped, canonical, first_difference, garbage
from turngym.envs.check_gymnasium import gymnasium_accepts_it
from turngym.envs.check_leaks import leaks
from turngym.envs.core import TextEnv
from turngym.errors import ConfigError, EpisodeOver, SnapshotUnsupported
from turngym.seeding import stream
from turngym.types import INFO_TYPES

Rule: TypeAlias = Callable[[Case], Iterator[str]]

_GARBAGE_TURNS = 200
_EXPERT_EPISODES = 10
_TASKS = 3
_SPLIT_SEEDS = 6


def episodes_repeat(case: Case) -> Iterator[str]:
    """Two copies with one seed show the same."""
    for seed in case.seeds:
        ours, theirs = Player(case.make(), seed).finish(), Player(case.make(), seed).finish()
        if where := first_difference(ours, theirs):
            yield f"two copies with seed {seed} differ {where}"


def copies_are_isolated(case: Case) -> Iterator[str]:
    """A copy that plays in between changes nothing."""
    for seed in case.seeds:
        alone = Player(case.make(), seed).finish()
        ours, other = Player(case.make(), seed), Player(case.make(), seed + 1)
        while not ours.is_over:
            if other.is_over:
                other.begin(seed + 2)
            other.step()
            ours.step()
        if where := first_difference(alone, ours.seen):
            yield f"with another copy playing in between, seed {seed} differs {where}"


def nothing_survives_a_reset(case: Case) -> Iterator[str]:
    """A used environment plays an episode as a fresh one does, after a whole episode and after a part of one."""
    for seed in case.seeds:
        fresh = Player(case.make(), seed).finish()
        env = case.make()
        Player(env, seed + 7).finish()
        if where := first_difference(fresh, Player(env, seed).finish()):
            yield f"after a whole other episode, seed {seed} differs {where}"
        Player(env, seed + 8).step()
        if where := first_difference(fresh, Player(env, seed).finish()):
            yield f"after a part of another episode, seed {seed} differs {where}"


def snapshots_are_exact(case: Case) -> Iterator[str]:
    """A branch from a snapshot equals the original, here and in a fresh copy, over the end of the episode too."""
    for seed in case.seeds:
        length = len(Player(case.make(), seed).finish())
        for turn in sorted({0, 1, length // 2, length - 1}):
            if turn < length:
                yield from _branch(case, seed, turn)


def _branch(case: Case, seed: int, turn: int) -> Iterator[str]:
    player = Player(case.make(), seed)
    for _ in range(turn):
        player.step()
    snapshot = _snapshot(player.env)
    if _snapshot(player.env) != snapshot:
        yield f"two snapshots of seed {seed} at turn {turn} differ"
    here, there = player.fork(player.env), player.fork(case.make())
    shown = player.seen[turn]
    original = _whole(player)[turn + 1 :]
    for name, branch in (("the same", here), ("a fresh", there)):
        if branch.env is not branch.env.unwrapped:
            branch.env.reset()  # wrappers want to see a beginning
        observation, info = branch.env.get_wrapper_attr("restore")(snapshot)
        if not shown.startswith("[" + canonical(observation)) or not shown.endswith(canonical(info) + "]"):
            got = canonical([observation, info])
            yield f"restore in {name} environment at turn {turn} of seed {seed} returns {got[:90]} for {shown[:90]}"
        if where := first_difference(original, _whole(branch)):
            yield f"a branch in {name} environment from turn {turn} of seed {seed} differs {where}"


def _whole(player: Player) -> list[str]:
    """Return the rest of an episode and the whole of the next, which goes on with the generator."""
    seen = list(player.finish())
    player.begin()
    return seen + player.finish()


def _snapshot(env: Env) -> bytes:
    try:
        return bytes(env.get_wrapper_attr("snapshot")())
    except SnapshotUnsupported as error:
        raise Skipped(str(error)) from error


def the_info_table_is_kept(case: Case) -> Iterator[str]:
    """Every key at every step, of its type; success, progress, flags and turn limit as documented."""
    for seed in case.seeds:
        env = case.make()
        actions = stream("check table", seed)
        observation, info = env.reset(seed=seed)
        yield from _wrong_in_table(env, observation, info, is_over=False)
        if info["action_is_valid"] is not True:
            yield "action_is_valid must be True after a reset"
        turn, is_over = 0, False
        while not is_over and turn <= env.get_wrapper_attr("max_turns"):
            legal = info["legal_actions"]
            action = legal[int(actions.integers(len(legal)))] if legal else garbage(actions)
            observation, reward, terminated, truncated, info = env.step(action)
            turn, is_over = turn + 1, bool(terminated or truncated)
            yield from _wrong_in_table(env, observation, info, is_over=is_over)
            if legal and info["action_is_valid"] is not True:
                yield f"the legal action {action!r} was answered as invalid"
            if type(reward) is not float or not math.isfinite(reward):
                yield f"the reward must be a finite float, got {reward!r}"
            if type(terminated) is not bool or type(truncated) is not bool or (terminated and truncated):
                yield f"the flags must be bool and never both True, got {terminated!r} and {truncated!r}"
        if not is_over:
            yield f"the episode of seed {seed} goes on after max_turns={env.get_wrapper_attr('max_turns')} turns"


def _wrong_in_table(env: Env, observation: Any, info: Any, *, is_over: bool) -> Iterator[str]:
    if observation not in env.observation_space:
        yield f"the observation {str(observation)[:60]!r} is not in the observation space"
    if set(info) != set(INFO_TYPES):
        yield f"info must have the keys {sorted(INFO_TYPES)}, got {sorted(info)}"
        return
    for key, kind in INFO_TYPES.items():
        if type(info[key]) is not kind:
            yield f"info[{key!r}] must be {kind.__name__}, got {type(info[key]).__name__}"
    if info["success"] not in ((0, 1) if is_over else (-1,)):
        yield f"success must be -1 while the episode runs and 0 or 1 after it, got {info['success']!r}"
    if not (math.isnan(info["progress"]) or 0 <= info["progress"] <= 1):
        yield f"progress must lie in [0, 1] or be nan, got {info['progress']!r}"
    if not all(isinstance(action, str) for action in info["legal_actions"]):
        yield "every legal action must be a str"
    if is_over and info["legal_actions"]:
        yield "nothing is legal after the end of the episode"
    if info["fault"]:
        yield f"fault must be empty in an environment that works, got {info['fault']!r}"


def the_call_order_is_kept(case: Case) -> Iterator[str]:
    """Stepping before the first reset or after the end raises; closing twice is harmless."""
    env = case.make()
    if not _raises_over(env):
        yield "step() before the first reset() must raise EpisodeOver"
    Player(env, case.seeds[0]).finish()
    if not _raises_over(env):
        yield "step() after the end of the episode must raise EpisodeOver"
    env.close()
    env.close()


def _raises_over(env: Env) -> bool:
    try:
        env.step("anything")
    except (EpisodeOver, ResetNeeded):
        return True
    return False


def any_text_is_answered(case: Case) -> Iterator[str]:
    """No text raises, however odd."""
    env = case.make()
    actions = stream("check garbage", case.seeds[0])
    env.reset(seed=case.seeds[0])
    for _ in range(_GARBAGE_TURNS):
        action = garbage(actions)
        try:
            _, _, terminated, truncated, _ = env.step(action)
        except Exception as error:  # the finding itself
            yield f"the action {action[:40]!r} raised {type(error).__name__}: {error}"
            terminated = True
        if terminated or truncated:
            env.reset()


def hidden_facts_stay_hidden(case: Case) -> Iterator[str]:
    """Other hidden facts that fit what was seen change neither anchor nor progress nor legal actions."""
    swapped = 0
    for seed in case.seeds:
        player = Player(case.make(), seed)
        while not player.is_over:
            inner = _inner(player.env)
            before = inner._info()
            if inner.resample_hidden():
                swapped += 1
                after = inner._info()
                for key in ("anchor", "progress", "legal_actions"):
                    if canonical(before[key]) != canonical(after[key]):
                        yield f"{key} tells a hidden fact: {before[key]!r:.80} became {after[key]!r:.80}"
            player.step()
    if not swapped:
        raise Skipped("nothing is hidden: resample_hidden() changed nothing")


def _inner(env: Env) -> TextEnv[Any]:
    inner = env.unwrapped
    assert isinstance(inner, TextEnv)
    return inner


def the_expert_solves_it(case: Case) -> Iterator[str]:
    """Every expert action is valid and changes nothing by being asked for; some episode is solved."""
    solved = 0
    for seed in range(case.seeds[0], case.seeds[0] + _EXPERT_EPISODES):
        env = case.make()
        _, info = env.reset(seed=seed)
        is_over = False
        while not is_over:
            state = env.unwrapped.np_random.bit_generator.state
            action, again = _expert_action(env), _expert_action(env)
            if action != again or env.unwrapped.np_random.bit_generator.state != state:
                yield f"asking for the expert action twice gives {action!r} and {again!r}, or moves the generator"
            _, _, terminated, truncated, info = env.step(action)
            if not info["action_is_valid"]:
                yield f"the expert's action {action!r} is not valid (seed {seed})"
            is_over = terminated or truncated
        solved += info["success"] == 1
    if not solved:
        yield f"the expert solved none of {_EXPERT_EPISODES} episodes"


def _expert_action(env: Env) -> str:
    try:
        return str(env.get_wrapper_attr("expert_action")())
    except ConfigError as error:
        raise Skipped(str(error)) from error


def the_global_generators_stay_untouched(case: Case) -> Iterator[str]:
    """Neither ``random`` nor NumPy's global generator is used or seeded."""
    before = random.getstate(), canonical(list(np.random.get_state()))
    Player(case.make(), case.seeds[0]).finish()
    if random.getstate() != before[0]:
        yield "the global generator of `random` has moved: draw from self.np_random"
    if canonical(list(np.random.get_state())) != before[1]:
        yield "NumPy's global generator has moved: draw from self.np_random"


def tasks_can_be_chosen(case: Case) -> Iterator[str]:
    """A task's name picks the same instance whatever the seed."""
    env = case.make()
    tasks = env.get_wrapper_attr("tasks")()
    if not tasks:
        raise Skipped("there is no list of tasks")
    for task in tasks[:_TASKS]:
        names = set()
        for seed in case.seeds:
            env.reset(seed=seed, options={"task": task})
            names.add(_inner(env).instance_hash)
        if len(names) > 1:
            yield f"task {task!r} is another instance with another seed"


def splits_share_nothing(case: Case) -> Iterator[str]:
    """No instance belongs to two splits."""
    inner = _inner(case.make())
    if inner.finite_instances is not None:
        raise Skipped(f"finite_instances={inner.finite_instances}: every split draws from all of them")
    found: dict[str, str] = {}
    for split in inner.splits:
        env = case.make(split=split)
        for seed in range(case.seeds[0], case.seeds[0] + _SPLIT_SEEDS):
            env.reset(seed=seed)
            name = _inner(env).instance_hash
            if found.setdefault(name, split) != split:
                yield f"instance {name} belongs to {found[name]} and to {split}"


RULES: dict[str, Rule] = {
    "Gymnasium accepts it": gymnasium_accepts_it,
    "episodes repeat": episodes_repeat,
    "copies are isolated": copies_are_isolated,
    "nothing survives a reset": nothing_survives_a_reset,
    "snapshots are exact": snapshots_are_exact,
    "the info table is kept": the_info_table_is_kept,
    "the call order is kept": the_call_order_is_kept,
    "any text is answered": any_text_is_answered,
    "hidden facts stay hidden": hidden_facts_stay_hidden,
    "the expert solves it": the_expert_solves_it,
    "the global generators stay untouched": the_global_generators_stay_untouched,
    "tasks can be chosen": tasks_can_be_chosen,
    "splits share nothing": splits_share_nothing,
    "nothing leaks": leaks,
}
