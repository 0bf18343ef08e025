"""TextWorldExpress's Java processes: shared, killed, ended; snapshots that replay elsewhere are refused."""

import gc
import json
import os
import signal

import gymnasium
import pytest
from express import EASY_MAP, easy

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.textworlds.java import JavaGone, close_java
from turngym.envs.textworlds.textworld_express.env import TextWorldExpress
from turngym.envs.textworlds.textworld_express.games import GAMES
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, SnapshotUnsupported

__all__ = ["easy"]  # fixture


def test_a_snapshot_that_replays_differently_is_refused(easy: TextWorldExpress) -> None:
    easy.reset(seed=2)
    easy.step("task")
    content = json.loads(easy.snapshot())
    content["state"]["last"] += " And a dragon."
    with pytest.raises(SnapshotUnsupported, match="diverged"):
        easy.restore(json.dumps(content).encode())
    other = TextWorldExpress(game="mapreader", params=EASY_MAP, max_turns=13)
    with pytest.raises(ConfigError, match="belongs to"):
        other.restore(easy.snapshot())


@pytest.mark.integration
def test_a_killed_process_is_a_clear_error_and_reset_recovers() -> None:
    env = TextWorldExpress(game="simonsays")
    before = env.reset(seed=5)
    assert env._java is not None
    os.kill(env._java.process.pid, signal.SIGKILL)
    with pytest.raises(JavaGone, match=r"has ended with exit status -9: the episode is lost; reset\(\) starts"):
        env.step(before[1]["legal_actions"][0])
    with pytest.raises(JavaGone):
        env.step(before[1]["legal_actions"][0])
    assert env.reset(seed=5) == before
    env.close()
    with pytest.raises(JavaGone, match="closed in mid-episode"):
        env.step(before[1]["legal_actions"][0])
    env.close()


def test_one_process_serves_all_resets_and_nothing_is_left_after_close() -> None:
    close_java()
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    env = gymnasium.make("turngym/TextWorldExpress-v0", game="simonsays")
    pids = set()
    for seed in range(3):
        env.reset(seed=seed)
        java = env.get_wrapper_attr("_java")
        pids.add(java.process.pid)
    assert len(pids) == 1
    env.close()
    close_java()
    with pytest.raises(ProcessLookupError):
        os.kill(pids.pop(), 0)
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) == descriptors


def test_games_share_one_process_save_where_their_tasks_share_objects() -> None:
    """In sorting and arithmetic, two games of one task would put the same objects into both boxes."""
    for game in GAMES:
        envs = [TextWorldExpress(game=game, split="test") for _ in range(2)]
        for env in envs:
            env.reset(options={"task": 3})
        while envs[0]._running:
            action = envs[0].expert_action()
            assert envs[0].step(action) == envs[1].step(action)
        first, second = (env._java for env in envs)
        assert first is not None and second is not None
        assert (first.process is second.process) == (game not in ("arithmetic", "sorting"))
        for env in envs:
            env.close()


def test_threads_that_share_a_process_see_what_one_thread_sees() -> None:
    seen = []
    for backend in ("sync", "thread"):
        vector = make_vec("turngym/TextWorldExpress-v0", 6, backend=backend, game="cookingworld")
        observations, infos = vector.reset(seed=3)
        shown = [list(observations)]
        for turn in range(20):
            legal = [row["legal_actions"] for row in infos.rows]
            observations, *_, infos = vector.step(tuple(actions[turn % len(actions)] for actions in legal))
            shown.append([list(observations), [row["anchor"] for row in infos.rows]])
        seen.append(shown)
        vector.close()
    assert seen[0] == seen[1]
