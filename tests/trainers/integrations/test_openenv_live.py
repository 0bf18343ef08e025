"""Server and client of OpenEnv's protocol against the package openenv: its client, its validator, its server."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from served_envs import Served, Waiting

from turngym.envs.adapters.openenv_line import Refused, ServerFault
from turngym.envs.check import check
from turngym.envs.servers.openenv.server import serving
from turngym.envs.servers.openenv.sessions import Limits
from turngym.envs.transcript import transcript
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.seeding import stream

pytestmark = pytest.mark.integration
pytest.importorskip("openenv", reason="the package openenv is not in .venvs/openenv: run make test-integration")

from openenv_peer import echo_server  # noqa: E402

ROOT = Path(__file__).parents[3]
GAMES = ("GuessTheNumber", "Sokoban", "Minesweeper", "Mastermind", "Wordle")
CLIENT = "turngym/OpenEnv-v0"


@contextmanager
def serving_id(env_id: str, **more: Any) -> Iterator[str]:
    with serving(partial(gymnasium.make, env_id), env_id, **more) as url:
        yield url


@contextmanager
def command(*words: str) -> Iterator[str]:
    """Run ``turngym serve-env`` and give its URL."""
    argv = [sys.executable, "-m", "turngym", "serve-env", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving "), line
        try:
            yield line.partition(" at ")[2].split()[0]
        finally:
            process.terminate()
            process.wait(60)


def generic(url: str, **more: Any) -> Any:
    from openenv.core.generic_client import GenericEnvClient

    return GenericEnvClient(base_url=url, **more)


def chosen(generator: np.random.Generator, observation: Any, info: Any) -> str:
    legal = info["legal_actions"]
    return str(legal[int(generator.random() * len(legal))]) if legal else "crane"


def test_openenvs_validator_passes_a_server_of_the_command() -> None:
    with command("turngym/Sokoban-v0", "--port", "0", "--option", "boxes=1") as url:
        words = [sys.executable, "-W", "ignore", "-m", "openenv.cli", "validate", "--url", url, "--json"]
        found = subprocess.run(words, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout + found.stderr
        report = json.loads(found.stdout)
    assert report["passed"] and report["mode"] == "simulation"
    assert report["summary"]["passed_count"] == report["summary"]["total_count"] == 6


def test_openenvs_client_sees_what_the_environment_shows() -> None:
    async def play(url: str) -> None:
        native = gymnasium.make("turngym/Minesweeper-v0")
        async with generic(url) as client:
            for seed in (0, 7):
                result = await client.reset(seed=seed, episode_id="e")
                observation, info = native.reset(seed=seed)
                assert result.observation["text"] == observation and not result.done
                over = False
                while not over:
                    action = info["legal_actions"][0]
                    result = await client.step({"message": action})
                    observation, reward, terminated, truncated, info = native.step(action)
                    over = terminated or truncated
                    assert (result.observation["text"], result.reward, result.done) == (observation, reward, over)
                    assert result.metadata["truncated"] == truncated
                    assert result.metadata["legal_actions"] == list(info["legal_actions"])
                assert (await client.state())["episode_id"] == "e"

    with serving_id("turngym/Minesweeper-v0") as url:
        asyncio.run(play(url))


def test_openenvs_typed_client_takes_our_messages() -> None:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server.types import Action, Observation, State

    class TextAction(Action):  # type: ignore[misc]
        message: str

    class TextObservation(Observation):  # type: ignore[misc]
        text: str

    class Client(EnvClient[TextAction, TextObservation, State]):  # type: ignore[misc]
        def _step_payload(self, action: TextAction) -> dict[str, Any]:
            return {"message": action.message}

        def _parse_result(self, payload: dict[str, Any]) -> StepResult[TextObservation]:
            seen = TextObservation(**payload["observation"], done=payload["done"], reward=payload["reward"])
            return StepResult(observation=seen, reward=seen.reward, done=seen.done)

        def _parse_state(self, payload: dict[str, Any]) -> State:
            return State(**payload)

    async def play(url: str) -> None:
        async with Client(base_url=url) as client:
            await client.reset(seed=1)
            result = await client.step(TextAction(message="end"))
            assert result.done and result.observation.metadata["terminated"] and result.reward == 1.0
            assert (await client.state()).step_count == 1

    with serving(Served, "served") as url:
        asyncio.run(play(url))


def test_openenvs_client_is_told_of_capacity_faults_and_tokens_in_its_own_words() -> None:
    async def play(url: str) -> None:
        headers = {"Authorization": "Bearer secret"}
        async with generic(url, headers=headers) as one, generic(url, headers=headers) as two:
            await one.reset()
            with pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
                await two.reset()
            with pytest.raises(RuntimeError, match=r"broken.*EXECUTION_ERROR"):
                await one.step({"message": "break"})
            with pytest.raises(RuntimeError, match=r"Did you mean 'message'.*VALIDATION_ERROR"):
                await one.step({"mesage": "go"})
            assert not (await one.reset()).done
        with pytest.raises(ConnectionError, match="401"):
            await generic(url).connect()

    with serving(Waiting, "waiting", token="secret", limits=Limits(max_sessions=1)) as url:
        asyncio.run(play(url))


@pytest.mark.parametrize("game", GAMES)
def test_a_round_trip_shows_the_transcript_of_the_environment_itself(game: str) -> None:
    env_id = f"turngym/{game}-v0"
    with serving_id(env_id) as url:
        client = gymnasium.make(CLIENT, url=url)
        for seed in range(3):
            texts = [
                transcript(env, seed, partial(chosen, stream("openenv", seed)))
                for env in (gymnasium.make(env_id), client)
            ]
            native, ours = [text.partition("\n")[2] for text in texts]  # the first line names the environment
            assert native == ours
        client.close()


def test_the_client_keeps_every_promise_of_the_contract() -> None:
    with serving_id("turngym/GuessTheNumber-v0") as url:
        report = check(CLIENT, options={"url": url}, episodes=2, in_process=True)
        assert not report.failed, report.findings


def test_a_vector_of_clients_shows_what_a_vector_of_the_environment_shows() -> None:
    seeds = [100 + slot for slot in range(24)]
    with serving_id("turngym/Sokoban-v0") as url:
        vectors = [
            make_vec(CLIENT, 24, backend="asyncio", url=url, autoreset_mode="disabled"),
            make_vec("turngym/Sokoban-v0", 24, autoreset_mode="disabled"),
        ]
        seen: list[Any] = [vector.reset(seed=seeds) for vector in vectors]
        assert seen[0][0] == seen[1][0] and seen[0][1].rows == seen[1][1].rows
        generator, running = stream("openenv vector"), list(range(24))
        for _ in range(10):
            actions = [chosen(generator, None, row) for row in seen[1][-1].rows]
            seen = [vector.step(actions, running) for vector in vectors]
            assert seen[0][0] == seen[1][0] and seen[0][-1].rows == seen[1][-1].rows
            assert all((ours == theirs).all() for ours, theirs in zip(seen[0][1:4], seen[1][1:4], strict=True))
            running = [slot for slot, row in zip(running, seen[0][-1].rows, strict=True) if row["success"] < 0]
            seen = [vector.step(["no move"] * len(running), running) for vector in vectors]
        assert vectors[0].stats()["faults"] == {}
        for vector in vectors:
            vector.close()


def test_a_snapshot_of_a_vector_of_clients_is_restored_by_replay() -> None:
    with serving_id("turngym/Sokoban-v0") as url:
        env: Any = gymnasium.make(CLIENT, url=url)
        env.reset(seed=5)
        for action in ("up", "left", "right"):
            env.step(action)
        snapshot = env.snapshot()
        first = [env.step(action) for action in ("down", "up")]
        other: Any = gymnasium.make(CLIENT, url=url)
        other.restore(snapshot)
        assert repr(first) == repr([other.step(action) for action in ("down", "up")])
        env.close()
        other.close()


def test_what_breaks_or_hangs_on_the_server_is_the_fault_of_one_slot() -> None:
    with serving(Waiting, "waiting") as url:
        vector = make_vec(CLIENT, 4, backend="asyncio", url=url, answer_seconds=20.0, step_timeout_seconds=3.0)
        vector.reset(seed=1)
        _, rewards, terminations, truncations, infos = vector.step(["go", "break", "sleep", "go"])
        assert truncations.tolist() == [False, True, True, False] and not terminations.any()
        assert rewards.tolist() == [1.0, 0.0, 0.0, 1.0]
        faults = [row["fault"] for row in infos.rows]
        assert "ValueError: broken in two" in faults[1] and faults[2] and not faults[0] and not faults[3]
        infos = vector.step(["go", "go", "go", "go"])[-1]  # two begin anew
        assert [row["anchor"] for row in infos.rows] == ["2", "0", "0", "2"]
        assert sum(vector.stats()["faults"].values()) == 2
        vector.close()


def test_a_server_that_does_not_answer_in_time_is_left_and_the_next_episode_is_not_disturbed() -> None:
    with serving(Waiting, "waiting") as url:
        env = gymnasium.make(CLIENT, url=url, answer_seconds=0.5)
        env.reset(seed=1)
        with pytest.raises(ServerFault, match=r"did not answer within 0.5 seconds"):
            env.step("nap")
        env.reset(seed=2)
        assert env.step("go")[0] == "1"
        env.close()


def test_a_session_that_idled_away_between_episodes_is_opened_again_and_one_in_an_episode_is_a_fault() -> None:
    with serving(Served, "served", limits=Limits(idle_seconds=0.5)) as url:
        env = gymnasium.make(CLIENT, url=url)
        env.reset(seed=1)
        assert env.step("end")[2]
        time.sleep(1.0)
        env.reset(seed=1)
        time.sleep(1.0)
        with pytest.raises(ServerFault):
            env.step("go")
        with pytest.raises(ServerFault, match=r"Call reset\(\)"):
            env.step("go")
        env.reset(seed=1)
        assert env.step("go")[0] == "1"
        env.close()


def test_a_server_that_was_down_is_found_again() -> None:
    with serving(Served, "served") as url:
        env = gymnasium.make(CLIENT, url=url, connect_seconds=0.3)
        env.reset(seed=1)
    with pytest.raises(ServerFault):
        env.step("go")
    with pytest.raises(ServerFault, match="cannot be reached"):
        env.reset(seed=1)
    with pytest.raises(ServerFault, match="cannot be read"):
        gymnasium.make(CLIENT, url=url, connect_seconds=0.3)
    with serving(Served, "served", port=int(url.rpartition(":")[2])):
        env.reset(seed=1)
        assert env.step("go")[0] == "1"
        env.close()


def test_a_full_server_is_asked_again_until_a_place_is_free() -> None:
    with serving(Served, "served", limits=Limits(max_sessions=1)) as url:
        one, two = (gymnasium.make(CLIENT, url=url, connect_seconds=seconds) for seconds in (30.0, 0.2))
        two.reset(seed=1)
        hasty = gymnasium.make(CLIENT, url=url, connect_seconds=0.2)
        with pytest.raises(Refused, match="CAPACITY_REACHED"):
            hasty.reset(seed=1)
        two.close()
        one.reset(seed=1)
        assert one.step("go")[0] == "1"
        one.close()
        hasty.close()


@pytest.mark.parametrize(("env_id", "finds"), [("turngym/SearchQAEasy-v0", True), ("turngym/GuessTheNumber-v0", False)])
def test_the_client_knows_how_an_action_is_found_in_an_answer(env_id: str, finds: bool) -> None:
    with serving_id(env_id) as url:
        env = gymnasium.make(CLIENT, url=url)
        assert env.get_wrapper_attr("finds_action") is finds
        env.close()


def test_a_token_is_needed_where_there_is_one_and_stands_in_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Served, "served", token="secret") as url:
        for wrong in ("", "sesame"):
            with pytest.raises(ConfigError, match="token="):
                gymnasium.make(CLIENT, url=url, token=wrong)
        env: Any = gymnasium.make(CLIENT, url=url, token="secret")
        env.reset(seed=1)
        assert b"secret" not in env.snapshot() and env.settings["token"] == ""
        env.close()
        monkeypatch.setenv("MY_TOKEN", "secret")
        env = gymnasium.make(CLIENT, url=url, token="$MY_TOKEN")
        assert env.reset(seed=1)[0] and env.settings["token"] == "$MY_TOKEN"
        with pytest.raises(ConfigError, match="the option 'nothing'"):
            env.reset(options={"nothing": 1})
        env.close()


def test_a_task_that_the_server_does_not_know_is_the_callers_to_mend() -> None:
    with serving_id("turngym/GuessTheNumber-v0") as url:
        env = gymnasium.make(CLIENT, url=url)
        with pytest.raises(ConfigError, match="noon"):
            env.reset(seed=1, options={"task": "noon"})
        vector = make_vec(CLIENT, 2, backend="asyncio", url=url)
        with pytest.raises(ConfigError, match="noon"):
            vector.reset(seed=1, options={"task": "noon"})
        vector.close()
        env.close()


def test_an_environment_on_openenvs_own_server_keeps_our_contract() -> None:
    with echo_server() as url:
        env = gymnasium.make(CLIENT, url=url, solved_above=0.0)
        assert env.reset(seed=4)[0] == "seed 4"
        observation, reward, terminated, truncated, info = env.step("hello")
        assert (observation, reward, terminated, truncated) == ("hello", 0.0, False, False)
        assert (info["anchor"], info["success"], info["score"], info["progress"]) == ("hello", -1, 0.0, 0.0)
        observation, reward, terminated, truncated, info = env.step("win")
        assert terminated and not truncated and (info["success"], info["score"], info["progress"]) == (1, 1.0, 1.0)
        env.reset(seed=4)
        with pytest.raises(Refused, match="broken over there"):
            env.step("break")
        env.close()
        assert not check(CLIENT, options={"url": url, "max_turns": 4}, episodes=2, in_process=True).failed


def test_hundreds_of_sessions_play_at_once() -> None:
    with serving(Waiting, "waiting") as url:
        vector = make_vec(CLIENT, 300, backend="asyncio", url=url)
        observations, _ = vector.reset(seed=1)
        assert len(set(observations)) == 300
        for turn in (1, 2):
            assert vector.step(["go"] * 300)[0] == (str(turn),) * 300
        assert vector.stats()["faults"] == {}
        vector.close()


def test_the_example_runs() -> None:
    example = ROOT / "trainers" / "integrations" / "examples" / "openenv_round_trip.py"
    assert len(example.read_text("utf8").splitlines()) < 60
    found = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert found.returncode == 0, found.stderr
    assert "solved" in found.stdout
