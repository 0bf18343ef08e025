"""Rules about ``snapshot`` and ``restore``: an episode continued from a saved state is unchanged."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from turngym.envs.checks.case import Case, Env, Episode, begin, canonical, follow, inner, is_wrapped
from turngym.envs.checks.diagnosis import there
from turngym.envs.checks.elsewhere import PLAIN, elsewhere
from turngym.envs.checks.repeat import REUSABLE, generator_state
from turngym.envs.checks.rule import Finding, Skipped, difference, excerpts, raised, rule
from turngym.errors import SnapshotUnsupported

_NEXT_TURNS = 20


def take(env: Env) -> Any:
    """Return a snapshot.

    Raises:
        Skipped: The environment has no snapshots.
    """
    try:
        return env.get_wrapper_attr("snapshot")()
    except SnapshotUnsupported as error:
        raise Skipped(str(error)) from error


def _turns(episode: Episode) -> list[int]:
    """Return the turns at which snapshots are taken: first, second, middle, last but one and the end."""
    last = len(episode.actions)
    return sorted({0, min(1, last), last // 2, max(0, last - 1), last})


def _play_to(env: Env, episode: Episode, turn: int) -> None:
    follow(env, begin(env, episode.seed), episode.actions[:turn])


def _own_generators(env: Env) -> dict[str, str]:
    """Return name -> state of the generators that this copy holds."""
    held: dict[str, Any] = {"self.np_random": inner(env).np_random}
    for name, value in vars(inner(env)).items():
        is_generator = isinstance(value, np.random.Generator | np.random.RandomState | random.Random)
        if is_generator and value is not inner(env).np_random:
            held[f"self.{name}"] = value
    return {name: generator_state(generator) for name, generator in held.items()}


@rule(
    "snapshot-json",
    "snapshot() gives JSON as bytes, at every turn, and twice the same.",
    why="A snapshot travels between processes and machines and is kept in files; JSON is read there, never unpickled.",
    fix="Return lists, dicts, texts and numbers from save_state(): sorted(...) for sets, int(...) for numbers of "
    "NumPy, no objects.",
)
def snapshot_json(case: Case) -> Iterator[Finding]:
    """Snapshots are JSON."""
    for turn in _turns(case.first):
        _play_to(case.env, case.first, turn)
        try:
            snapshot = take(case.env)
            if not isinstance(snapshot, bytes):
                yield Finding(f"snapshot() must give bytes, got {type(snapshot).__name__}", case.first.seed, turn)
                return
            json.loads(snapshot)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            yield Finding(f"snapshot() raised or is not JSON: {raised(error)}", case.first.seed, turn)
            return
        again = take(case.env)
        if again != snapshot:
            what = "two snapshots of one state differ"
            yield Finding(what, case.first.seed, turn, *excerpts(snapshot.decode(), bytes(again).decode()))
            return


@rule(
    "snapshot-generator",
    "restore() brings back every random generator as it was.",
    why="A branch whose dice fall otherwise is another episode: tree search and branched rollouts compare apples and "
    "pears.",
    fix="TextEnv saves self.np_random: draw from nothing else. Where you keep a generator of your own, save its "
    "bit_generator.state in save_state() and set it in load_state().",
    after=(*REUSABLE, "snapshot-json", "info-complete", "observation-in-space"),
)
def snapshot_generator(case: Case) -> Iterator[Finding]:
    """Generators are part of the state."""
    turn = len(case.first.actions) // 2
    _play_to(case.env, case.first, turn)
    snapshot, saved = take(case.env), _own_generators(case.env)
    case.env.reset(seed=case.seeds[-1] + 1)
    case.env.get_wrapper_attr("restore")(snapshot)
    restored = _own_generators(case.env)
    for name, state in saved.items():
        if restored.get(name) != state:
            yield Finding(f"restore() leaves the generator {name} where it was", case.first.seed, turn)


@rule(
    "snapshot-exact",
    "A branch from a snapshot equals the original to its end and into the next episode, here and in a fresh copy.",
    why="Branching, resuming after a kill, undo and the replacement of a dead worker all rest on it.",
    fix="Put every attribute that apply_action(), anchor(), legal_actions(), progress() or score() reads into "
    "save_state(), and set it in load_state(); restore() must also work on a copy that was never reset.",
    after=(*REUSABLE, "snapshot-json", "snapshot-generator"),
)
def snapshot_exact(case: Case) -> Iterator[Finding]:
    """Restoring continues the episode exactly."""
    for position, episode in enumerate(case.recorded[:2]):
        following = None  # with a wrapper it may depend on the episodes before: it is played after each snapshot
        if not is_wrapped(case.env):
            _play_to(case.env, episode, 0)
            take(case.env)
            following = _next_episode(case.env, episode, episode.actions)
        for turn in _turns(episode):
            found = list(_branch(case, episode, turn, following, is_fresh=position == 0))
            yield from found
            if found:
                return  # one example is enough


def _branch(
    case: Case, episode: Episode, turn: int, following: list[str] | None, *, is_fresh: bool
) -> Iterator[Finding]:
    _play_to(case.env, episode, turn)
    snapshot = take(case.env)
    rest = episode.actions[turn:]
    original = [turn.text for turn in episode.turns[turn + 1 :]]
    if following is None:
        following = _next_episode(case.env, episode, rest)
    else:
        case.env.reset()  # what the snapshot lacks is gone
    copies = [("the same", case.env), ("another", case.kept("second"))]
    if is_fresh and turn == len(episode.actions) // 2:
        copies.append(("a fresh", case.make()))
    for name, env in copies:
        if is_wrapped(env):
            env.reset()  # wrappers need a reset first
        shown = canonical(list(env.get_wrapper_attr("restore")(snapshot)))
        if shown != episode.turns[turn].shown:
            what = f"restore() in {name} copy returns another observation or info"
            yield Finding(what, episode.seed, turn, *excerpts(episode.turns[turn].shown, shown))
            return
        again = take(env)
        if again != snapshot:
            what = f"a snapshot taken after restore() in {name} copy is another one"
            yield Finding(what, episode.seed, turn, *excerpts(snapshot.decode(), bytes(again).decode()))
            return
        branch = Episode(episode.seed, [episode.turns[turn]], is_over=episode.is_over and not rest)
        seen = follow(env, branch, rest)[1:]
        what = f"the branch in {name} copy from turn {turn} differs"
        yield from difference(what, ["", *original], ["", *seen], episode.seed)
        later = _next_episode(env, episode, [])
        yield from difference(f"{what} in the episode after it", following, later, episode.seed)


def _next_episode(env: Env, episode: Episode, rest: list[str]) -> list[str]:
    """Finish the episode, play the next one without a seed, and return what was seen of it."""
    follow(env, Episode(episode.seed, [episode.turns[0]]), rest)
    return follow(env, begin(env), episode.actions[:_NEXT_TURNS])


@rule(
    "snapshot-elsewhere",
    "A snapshot restores to the same in another process.",
    why="Workers that died are rebuilt elsewhere, and snapshots in files outlive their process.",
    fix="Save the facts themselves in save_state(), no place in a table, id() or name that only this process knows.",
    after=(
        *REUSABLE,
        "snapshot-json",
        "snapshot-generator",
        "snapshot-exact",
        "no-hash-order",
        "same-in-other-process",
    ),
)
def snapshot_elsewhere(case: Case) -> Iterator[Finding]:
    """Restoring in a fresh process continues the episode exactly."""
    there(case)
    processes = elsewhere(case)
    if not processes.branches:
        raise Skipped("there are no snapshots")
    for branch, theirs in zip(processes.branches, processes.run(PLAIN).branches, strict=True):
        if theirs != branch.expected and theirs[:1] and theirs[0].startswith("raised "):
            yield Finding(f"restore() in another process {theirs[0]}", branch.seed, branch.turn)
        else:
            what = f"in another process, the branch from turn {branch.turn} differs"
            yield from difference(what, branch.expected, theirs, branch.seed)
