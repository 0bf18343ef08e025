"""The server for OpenEnv's clients as an application: sessions, limits, faults, who may ask. No package is needed."""

import asyncio
import time
from functools import partial

import gymnasium
import pytest
from asgi import Socket, request
from openenv_apps import app_of, code_of, fresh, run
from served_envs import Served, Waiting

__all__ = ["fresh"]


@pytest.mark.parametrize("make", [Served, Waiting])
def test_an_episode_over_a_socket_shows_what_the_environment_shows(make: type[Served]) -> None:
    async def talk() -> None:
        native = make()
        async with Socket(app_of(make)) as socket:
            first = (await socket.ask("reset", seed=3, episode_id="mine"))["data"]
            observation, info = native.reset(seed=3)
            assert first["observation"]["text"] == observation and first["reward"] is None and not first["done"]
            assert first["metadata"]["instructions"] == "Count." and first["metadata"]["seed"] == 3
            for _ in range(5):
                data = (await socket.act("go"))["data"]
                observation, reward, terminated, truncated, info = native.step("go")
                assert (data["observation"]["text"], data["reward"]) == (observation, reward)
                assert data["done"] == (terminated or truncated)
                seen = data["metadata"]
                assert (seen["terminated"], seen["truncated"]) == (terminated, truncated)
                assert (seen["anchor"], seen["score"], seen["progress"]) == (info["anchor"], info["score"], None)
                assert data["observation"]["metadata"] == seen
            assert truncated and await socket.ask("state") == {
                "type": "state",
                "data": {"episode_id": "mine", "step_count": 5},
            }

    run(talk())


def test_terminated_and_truncated_are_told_apart() -> None:
    async def talk() -> None:
        async with Socket(app_of()) as socket:
            await socket.ask("reset")
            metadata = (await socket.act("end"))["data"]["metadata"]
            assert metadata["terminated"] and not metadata["truncated"] and metadata["success"] == 1

    run(talk())


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        ("{", "INVALID_JSON", "Invalid JSON"),
        ("[" * 100_000, "INVALID_JSON", "Invalid JSON"),
        ("[]", "VALIDATION_ERROR", "object"),
        ('{"type": "step", "data": "up"}', "VALIDATION_ERROR", "object"),
        ('{"type": "stop"}', "UNKNOWN_TYPE", "stop"),
        ('{"type": "step", "data": {"mesage": "up"}}', "VALIDATION_ERROR", "'message'"),
        ('{"type": "step", "data": {"message": 3}}', "VALIDATION_ERROR", "int"),
        ('{"type": "step", "data": {}}', "VALIDATION_ERROR", "NoneType"),
        ('{"type": "reset", "data": {"sed": 3}}', "VALIDATION_ERROR", "'seed'"),
        ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR", "-1"),
        ('{"type": "reset", "data": {"seed": true}}', "VALIDATION_ERROR", "True"),
        ('{"type": "reset", "data": {"task": 1.5}}', "VALIDATION_ERROR", "1.5"),
    ],
)
def test_a_message_that_fits_no_schema_is_answered_and_changes_nothing(message: str, code: str, words: str) -> None:
    async def talk() -> None:
        async with Socket(app_of()) as socket:
            await socket.ask("reset", seed=1)
            await socket.act("go")
            socket.say(message)
            answer = await socket.hear()
            assert code_of(answer) == code and words in answer["data"]["message"]
            assert (await socket.act("go"))["data"]["observation"]["text"] == "2"

    run(talk())


def test_an_unknown_task_is_refused_in_the_words_of_the_environment() -> None:
    async def talk() -> None:
        game = partial(gymnasium.make, "turngym/GuessTheNumber-v0")
        async with Socket(app_of(game)) as socket:
            answer = await socket.ask("reset", task="noon")
            assert code_of(answer) == "VALIDATION_ERROR" and "noon" in answer["data"]["message"]
            assert (await socket.ask("reset"))["type"] == "observation"

    run(talk())


@pytest.mark.parametrize("kind", [Served, Waiting])
@pytest.mark.parametrize(("action", "words"), [("break", "ValueError: broken in two"), ("exit", "SystemExit: away")])
def test_a_fault_ends_the_episode_of_its_session_only(kind: type[Served], action: str, words: str) -> None:
    async def talk() -> None:
        app = app_of(kind)
        async with Socket(app) as one, Socket(app) as other:
            await one.ask("reset")
            await other.ask("reset")
            await other.act("go")
            answer = await one.act(action)
            assert code_of(answer) == "EXECUTION_ERROR" and words in answer["data"]["message"]
            assert Served.closed == ["closed"]
            assert "send a reset" in (await one.act("go"))["data"]["message"]
            assert (await other.act("go"))["data"]["observation"]["text"] == "2"
            assert (await one.ask("reset"))["type"] == "observation"
            assert (await one.act("go"))["data"]["observation"]["text"] == "1"

    run(talk())


def test_a_step_before_the_reset_or_after_the_end_is_refused_and_the_session_goes_on() -> None:
    async def talk() -> None:
        async with Socket(app_of()) as socket:
            assert code_of(await socket.act("go")) == "EXECUTION_ERROR"
            await socket.ask("reset")
            await socket.act("end")
            assert "reset" in (await socket.act("go"))["data"]["message"]
            assert not Served.closed
            assert (await socket.ask("reset"))["type"] == "observation"

    run(talk())


def test_an_environment_that_cannot_be_made_is_a_factory_error() -> None:
    async def talk() -> None:
        async with Socket(app_of(lambda: Served(start=-1))) as socket:
            answer = await socket.ask("reset")
            assert code_of(answer) == "FACTORY_ERROR" and "no such number" in answer["data"]["message"]

    run(talk())


def test_sessions_beyond_the_limit_are_told_so_and_closed_and_a_place_that_is_free_is_given_again() -> None:
    async def talk() -> None:
        app = app_of(max_sessions=2)
        async with Socket(app) as one:
            async with Socket(app), Socket(app) as third:
                answer = await third.hear()
                assert code_of(answer) == "CAPACITY_REACHED" and "--max-sessions" in answer["data"]["message"]
                assert (answer["data"]["active_sessions"], answer["data"]["max_sessions"]) == (2, 2)
                assert await third.hear() == 1013
            async with Socket(app) as fourth:
                assert (await fourth.ask("reset"))["type"] == "observation"
            assert (await one.ask("reset"))["type"] == "observation"
        assert len(app.sessions) == 0 and len(Served.closed) == 2

    run(talk())


def test_a_session_without_steps_makes_room_for_a_new_one_whatever_else_it_asks() -> None:
    async def talk() -> None:
        app = app_of(max_sessions=3)
        async with Socket(app) as asking, Socket(app) as playing:
            for socket in (asking, playing):
                await socket.ask("reset")
            assert (await request(app, "POST", "/reset", {"session_id": "named"}))[0] == 200
            for session in app.sessions._open:
                session.last_step -= 61
            assert (await playing.act("go"))["type"] == "observation"
            assert (await asking.ask("state"))["type"] == "state" and code_of(
                await asking.ask("stop")
            ) == "UNKNOWN_TYPE"
            assert (await request(app, "GET", "/state", query="session_id=named"))[0] == 200
            async with Socket(app) as first, Socket(app) as second, Socket(app) as third:
                assert all([(await each.ask("reset"))["type"] == "observation" for each in (first, second)])
                assert code_of(await third.hear()) == "CAPACITY_REACHED"
                answer = await asking.hear()
                assert code_of(answer) == "SESSION_ERROR" and "taken its place" in answer["data"]["message"]
                assert await asking.hear() == 1001
                assert (await request(app, "GET", "/state", query="session_id=named"))[0] == 409
                assert (await playing.act("go"))["type"] == "observation"
        while len(Served.closed) < 5:
            await asyncio.sleep(0.01)

    run(talk())


def test_many_messages_of_one_client_do_not_delay_another_one() -> None:
    async def talk() -> None:
        app = app_of()
        async with Socket(app) as many, Socket(app) as one:
            for socket in [many] * 100 + [one]:
                socket.say({"type": "state"})
            await one.hear()
            assert many._back.qsize() < 10
            assert [(await many.hear())["type"] for _ in range(100)] == ["state"] * 100

    run(talk())


def test_an_idle_session_is_ended_and_its_environment_closed() -> None:
    async def talk() -> None:
        app = app_of(idle_seconds=0.2)
        async with Socket(app) as socket:
            await socket.ask("reset")
            while (answer := await socket.ask("state"))["type"] == "state":
                await asyncio.sleep(0.01)
            assert code_of(answer) == "SESSION_ERROR" and "0.2 seconds" in answer["data"]["message"]
            assert await socket.hear() == 1001
            await socket.task
            assert Served.closed == ["closed"] and len(app.sessions) == 0

    run(talk())


@pytest.mark.parametrize("kind", [Served, Waiting])
def test_a_step_that_takes_too_long_is_a_fault_of_its_session(kind: type[Served]) -> None:
    async def talk() -> None:
        app = app_of(kind, step_seconds=0.3, threads=1)
        async with Socket(app) as socket:
            await socket.ask("reset")
            answer = await socket.act("wait" if kind is Served else "sleep")
            assert code_of(answer) == "EXECUTION_ERROR" and "0.3 seconds" in answer["data"]["message"]
            assert app.sessions.threads.given_up == 1
            assert (await socket.ask("reset"))["type"] == "observation"  # in another thread
            Served.gate.set()
            while app.sessions.threads.given_up or not Served.closed:
                await asyncio.sleep(0.01)
            assert Served.closed == ["closed"]  # by the thread that came back

    run(talk())


def test_environments_that_wait_do_so_side_by_side() -> None:
    """A hundred environments that wait a second take about as long as one."""

    async def talk() -> None:
        app = app_of(Waiting)
        sockets = [Socket(app) for _ in range(100)]
        for socket in sockets:
            await socket.__aenter__()
            await socket.ask("reset")
        begin = time.monotonic()
        await asyncio.gather(*[socket.act("nap") for socket in sockets])
        assert time.monotonic() - begin < 50
        for socket in sockets:
            await socket.__aexit__()

    async def threads() -> None:
        app = app_of()
        async with Socket(app) as one, Socket(app) as two, Socket(app) as three:
            for socket in (one, two, three):
                await socket.ask("reset")
            waiting = [asyncio.create_task(socket.act("wait")) for socket in (one, two)]
            while len(Served.waiting) < 2:  # both wait at once
                await asyncio.sleep(0.01)
            assert (await three.act("go"))["data"]["observation"]["text"] == "1"
            Served.gate.set()
            assert [answer["type"] for answer in await asyncio.gather(*waiting)] == ["observation"] * 2

    run(talk())
    run(threads())


def test_sessions_without_a_seed_differ_and_follow_from_the_seed_of_the_server() -> None:
    async def texts(seed: int | None) -> list[str]:
        app, found = app_of(seed=seed), []
        for _ in range(4):
            async with Socket(app) as socket:
                for _ in range(2):
                    found.append((await socket.ask("reset"))["data"]["observation"]["text"])
        return found

    first, again, other = (asyncio.run(texts(seed)) for seed in (5, 5, 6))
    assert first == again != other and len(set(first)) == 8
    assert len(set(asyncio.run(texts(None)))) == 8
