"""Every registered environment keeps every promise, in Gymnasium's hands and in ours; no exceptions are listed."""

import functools
import importlib
import multiprocessing
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from kinds import kinds

import turngym
from turngym.envs.check import check
from turngym.envs.checks.case import Case
from turngym.envs.checks.diagnosis import Diagnosis, there
from turngym.envs.checks.elsewhere import stop_processes
from turngym.envs.checks.rule import Skipped
from turngym.envs.checks.source import source_of
from turngym.envs.checks.table import RULES
from turngym.envs.registration import NAMESPACE, specs
from turngym.envs.transcript import reset_text, transcript, turn_text
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.errors import MissingExtra
from turngym.seeding import stream

ALL_IDS = sorted(specs())
NEEDS_PROGRAM = "turngym.envs.tools."
"""Environments that need a program, the sandbox, and no package."""


def needs_program(env_id: str) -> bool:
    return specs()[env_id].entry_point.startswith(NEEDS_PROGRAM)


def is_plain(env_id: str) -> bool:
    """Return whether the environment needs no package and no program."""
    return not (specs()[env_id].extra or needs_program(env_id))


@functools.cache
def usable(env_id: str) -> bool:
    """Return whether what the environment needs, such as Java, is on this machine."""
    if is_plain(env_id):
        return True
    try:
        env = gymnasium.make(env_id)
        env.reset(seed=0)
        env.close()
    except MissingExtra:
        return False
    return True


@functools.cache
def usable_ids() -> list[str]:
    return [env_id for env_id in ALL_IDS if usable(env_id)]


def one_of_each_kind() -> list[str]:
    return [env_id for env_id in usable_ids() if env_id in kinds()]


@pytest.fixture(params=ALL_IDS)
def env_id(request: pytest.FixtureRequest) -> str:
    """Each registered id; looked at when it is needed, so that collecting the tests makes no environment."""
    return needed(str(request.param))


@pytest.fixture(params=kinds())
def kind_id(request: pytest.FixtureRequest) -> str:
    """One id of each class."""
    return needed(str(request.param))


def needed(name: str) -> str:
    if not usable(name):
        pytest.skip(f"{name} needs a package, Java or a sandbox")
    return name


def test_the_registry_holds_the_tables() -> None:
    registered = {env_id for env_id in gymnasium.registry if env_id.startswith(f"{NAMESPACE}/")}
    assert registered == set(specs()) and len(usable_ids()) >= 6


PLAIN = [env_id for env_id in kinds() if is_plain(env_id)]
"""The kinds whose checks need neither a package nor a program: those of the others are slow, and integration tests."""


ELSEWHERE = (
    "no-clock",
    "no-hash-order",
    "same-in-other-process",
    "no-environment-variables",
    "snapshot-elsewhere",
    "no-temporary-files",
)
"""The rules that need other processes."""


@pytest.mark.parametrize("plain_id", PLAIN)
def test_the_check_finds_nothing(plain_id: str) -> None:
    """In one episode for each rule; in other processes, and of all kinds, below."""
    report = check(plain_id, episodes=1, in_process=True)
    assert not report.findings
    assert tuple(name for name, why in report.skipped if why == "other processes were not asked for") == ELSEWHERE


@pytest.mark.integration
@pytest.mark.parametrize("name", [env_id for env_id in ALL_IDS if env_id in kinds() or not needs_program(env_id)])
def test_the_check_finds_nothing_in_other_processes(name: str) -> None:
    """Of presets too, which differ from another id in options alone, but those in this process; not of a sandbox."""
    if name not in PLAIN:
        assert not check(needed(name), episodes=1, in_process=name not in kinds()).findings
        return
    case = Case(source_of(name)[1], episodes=1)  # the other rules are judged above
    try:
        for rule in ELSEWHERE:
            with suppress(Skipped):
                assert not list(RULES[rule].test(case)), rule
        assert there(case) == Diagnosis()
    finally:
        stop_processes(case)
        case.close(kept=True)


def test_gymnasium_checks_it_without_a_warning(env_id: str) -> None:
    env = gymnasium.make(env_id)
    assert env.unwrapped is env  # no wrapper hides the environment's own methods
    check_env(env)
    env.close()


def test_its_instances_share_the_keys_of_their_dicts(env_id: str) -> None:
    """CPython shares up to 30 keys; with more, a vector of a thousand slots loses a third of its speed."""
    env = gymnasium.make(env_id)
    env.reset(seed=0)
    assert len(vars(env)) <= 30
    env.close()


def test_the_id_works_through_a_module_prefix_and_in_gymnasiums_make_vec(env_id: str) -> None:
    gymnasium.make(f"turngym:{env_id}").close()
    vector = gymnasium.make_vec(env_id, num_envs=2)
    assert isinstance(vector, TextVectorEnv)
    vector.close()


def require_same_columns(seen: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for key, column in seen.items():
        if isinstance(column, dict):
            require_same_columns(column, other[key])
            continue
        assert column.dtype == other[key].dtype
        np.testing.assert_array_equal(column, other[key])


def test_gymnasiums_own_vector_shows_what_ours_shows(kind_id: str) -> None:
    theirs = SyncVectorEnv([lambda: gymnasium.make(kind_id)] * 2)
    ours = make_vec(kind_id, 2)
    seen, other = theirs.reset(seed=3), ours.reset(seed=3)
    actions = stream("conformance", kind_id)
    for _ in range(30):
        assert seen[0] == other[0]
        require_same_columns(seen[-1], other[-1])
        moves = tuple(pick(row, actions) for row in other[-1].rows)
        seen, other = theirs.step(moves), ours.step(moves)  # type: ignore[assignment]
    theirs.close()
    ours.close()


@pytest.mark.integration
def test_gymnasiums_process_vector_takes_every_environment() -> None:
    ids = one_of_each_kind()

    def maker(env_id: str) -> Any:
        return lambda: gymnasium.make(f"turngym:{env_id}")  # a process of the fork server has not imported turngym

    multiprocessing.set_forkserver_preload(["gymnasium"])  # once, and not in each process

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        vector = AsyncVectorEnv([maker(env_id) for env_id in ids], shared_memory=False, context="forkserver")
    try:
        first = vector.reset(seed=[5] * len(ids))[0]
        assert len(ids) > 30 and first == make_vec(ids).reset(seed=[5] * len(ids))[0]
        assert len(vector.step(("no action",) * len(ids))[0]) == len(ids)
    finally:
        vector.close()


def pick(info: Mapping[str, Any], generator: np.random.Generator) -> str:
    legal = info["legal_actions"]
    return str(legal[generator.integers(len(legal))]) if legal else "look"


def chosen(generator: np.random.Generator, observation: Any, info: Mapping[str, Any]) -> str:
    return pick(info, generator)


def play(vector: TextVectorEnv, first_seed: int) -> list[str]:
    """Play one episode per slot, each from its own seed, and return the transcripts without their headers."""
    seeds = [first_seed + slot for slot in range(vector.num_envs)]
    generators = [stream("conformance", seed) for seed in seeds]
    observations, infos = vector.reset(seed=seeds)
    rows = list(infos.rows)
    parts = [[reset_text(observation, row)] for observation, row in zip(observations, rows, strict=True)]
    running, turn = list(range(vector.num_envs)), 0
    while running:
        turn += 1
        actions = [pick(rows[slot], generators[slot]) for slot in running]
        observations, rewards, terminations, truncations, infos = vector.step(actions, running)
        for position, slot in enumerate(running):
            flags = bool(terminations[position]), bool(truncations[position])
            rows[slot] = infos.rows[position]
            reward = float(rewards[position])
            parts[slot].append(turn_text(turn, actions[position], observations[position], reward, *flags, rows[slot]))
        over = terminations | truncations
        running = [slot for position, slot in enumerate(running) if not over[position]]
    return ["\n".join(part) for part in parts]


def test_backends_give_byte_equal_transcripts() -> None:
    """An episode of each kind of environment; the single environment gives the same text too, for some of them."""
    ids = PLAIN
    vectors = [
        make_vec(ids, backend=backend, num_workers=workers, autoreset_mode=AutoresetMode.DISABLED)
        for backend, workers in (("sync", None), ("process", 3))
    ]
    one, other = [play(vector, 1000) for vector in vectors]
    assert other == one
    for slot in range(0, len(ids), 10):
        policy = functools.partial(chosen, stream("conformance", 1000 + slot))
        assert transcript(gymnasium.make(ids[slot]), 1000 + slot, policy).endswith(one[slot])
    for vector in vectors:
        assert vector.stats()["faults"] == {}
        vector.close()


def test_every_table_names_its_class() -> None:
    for env_id in ALL_IDS:
        module, _, name = specs()[env_id].entry_point.partition(":")
        assert issubclass(getattr(importlib.import_module(module), name), turngym.TextEnv)
