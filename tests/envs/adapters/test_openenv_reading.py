"""What the client of OpenEnv's protocol makes of schemas and messages, and the threads of the server."""

import asyncio
import json
import math
import sys
import threading
import time
from typing import Any

import gymnasium
import pytest
from hypothesis import given
from hypothesis import strategies as some

from turngym.envs.adapters.openenv_reading import (
    action_field,
    is_success,
    number,
    observation_text,
    read_json_action,
    read_observation,
)
from turngym.envs.servers.openenv.messages import Refusal, dump, observation_data, read_message
from turngym.envs.servers.openenv.server import is_loopback, serving
from turngym.envs.servers.threads import Broke, Threads
from turngym.errors import ConfigError, MissingExtra

TEXT, NUMBER, FREE = {"type": "string"}, {"type": "integer"}, {"type": "object"}
INFO = {"anchor": "here", "legal_actions": ("a", "b"), "success": 1, "progress": math.nan, "secret": "hidden"}


THE_FIELD_OF_A_TEXT_IS_FOUND_ONLY_WHERE: list[tuple[Any, str]] = [
    ({"properties": {"message": TEXT, "metadata": FREE}, "required": ["message"]}, "message"),
    ({"properties": {"code": TEXT}}, "code"),
    ({"properties": {"code": TEXT, "seconds": NUMBER}, "required": ["code"]}, "code"),
    ({"properties": {"code": TEXT, "note": TEXT}, "required": ["code"]}, "code"),
    ({"properties": {"code": TEXT, "note": TEXT}}, ""),
    ({"properties": {"x": NUMBER}, "required": ["x"]}, ""),
    ({"properties": {"type": {"type": "string", "const": "call"}, "tool": TEXT}, "required": ["type", "tool"]}, ""),
    ({"properties": {"move": {"type": "string", "enum": ["up", "down"]}}, "required": ["move"]}, ""),
    ({}, ""),
    ({"properties": ["x"]}, ""),
]


def test_the_field_of_a_text_is_found_only_where_an_action_is_one_text() -> None:
    for schema, field in THE_FIELD_OF_A_TEXT_IS_FOUND_ONLY_WHERE:
        assert action_field(schema) == field


def test_an_observation_shows_its_text_or_all_it_has() -> None:
    assert observation_text({"text": "a", "other": "b"}) == "a"
    assert observation_text({"text": "a", "other": [1]}, "other") == "[1]"
    assert observation_text({"text": "a"}, "absent") == ""
    assert observation_text({"board": "x", "done": True, "reward": 1.0, "metadata": {"a": "b"}, "none": None}) == "x"
    assert observation_text({"board": "x", "hint": "ä", "moves": {"n": 2}}) == 'board: x\nhint: ä\nmoves: {"n": 2}'
    assert observation_text({}) == ""


@pytest.mark.parametrize(
    ("data", "ended"),
    [
        ({"done": False}, (False, False)),
        ({"done": True}, (True, False)),
        ({"done": True, "metadata": {"truncated": True}}, (False, True)),
        ({"done": True, "metadata": {"truncated": True, "terminated": True}}, (True, False)),
        ({"done": False, "metadata": {"truncated": True}}, (False, False)),
        ({"done": True, "metadata": ["truncated"]}, (True, False)),
    ],
)
def test_done_is_told_apart_by_metadata_and_never_both(data: dict[str, Any], ended: tuple[bool, bool]) -> None:
    reading = read_observation({"observation": {"text": "x"}, **data})
    assert (reading.terminated, reading.truncated) == ended and reading.reward == 0.0


def test_a_reward_that_is_no_number_is_no_observation() -> None:
    for reward in ("high", float("nan"), float("inf")):
        with pytest.raises(ValueError):
            read_observation({"observation": {}, "reward": reward})


def test_numbers_and_success_come_from_metadata_where_they_are_told() -> None:
    assert math.isnan(number(None, 1.0)) and number("x", 1.0) == 1.0 and number(True, 0.0) == 1.0
    assert is_success({"is_success": True}, 0.0, 0.0) and not is_success({"success": 0}, 9.0, 0.0)
    assert is_success({"success": -1}, 1.0, 0.5) and not is_success({"success": "yes"}, 0.5, 0.5)
    assert read_json_action("[1]") is None and read_json_action('{"a": "b"}') == {"a": "b"}
    assert read_json_action("[" * 100_000) is None


@given(text=some.text(), reward=some.floats(allow_nan=False, allow_infinity=False), ended=some.sampled_from("tu-"))
def test_what_the_server_writes_the_client_reads(text: str, reward: float, ended: str) -> None:
    flags = ended == "t", ended == "u"
    data = json.loads(dump(observation_data(text, INFO, reward, flags)))
    reading = read_observation(data)
    assert reading[:4] == (text, reward, *flags)
    assert reading.metadata["legal_actions"] == ["a", "b"] and reading.metadata["progress"] is None
    assert "hidden" not in json.dumps(data)


@given(some.text() | some.binary())
def test_no_message_breaks_the_reader(raw: str | bytes) -> None:
    try:
        kind, data = read_message(raw)
    except Refusal as refusal:
        assert refusal.message()["data"]["code"] in ("INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR")
    else:
        assert kind and isinstance(data, dict)


def test_without_a_server_the_environment_says_how_to_get_one() -> None:
    with pytest.raises(MissingExtra, match="turngym serve-env ID"):
        gymnasium.make("turngym/OpenEnv-v0")
    for url in ("127.0.0.1:8000", "ftp://example.org", "http://"):
        with pytest.raises(ConfigError, match="url of turngym/OpenEnv-v0"):
            gymnasium.make("turngym/OpenEnv-v0", url=url)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_a_host_that_others_can_reach_needs_a_token(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ConfigError, match="pass a token"), serving(lambda: None, "x", host=host):
        pass


def test_threads_run_as_many_functions_at_once_as_they_may_and_no_more() -> None:
    async def work() -> None:
        threads, lock, most, now = Threads(3), threading.Lock(), 0, 0
        barrier = threading.Barrier(3)

        def function() -> None:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
            barrier.wait(60)  # three have to be here at once
            with lock:
                now -= 1

        await asyncio.gather(*[threads.run(function) for _ in range(9)])
        assert (most, threads.count) == (3, 3)
        assert await threads.run(sum, [1, 2]) == 3 and threads.count == 3
        threads.close()

    asyncio.run(work())


def test_a_function_that_ends_its_thread_is_told_and_another_takes_its_place() -> None:
    async def work() -> None:
        threads = Threads(1)
        with pytest.raises(Broke, match="SystemExit: away"):
            await threads.run(sys.exit, "away")
        with pytest.raises(ZeroDivisionError):
            await threads.run(divmod, 1, 0)
        assert await threads.run(len, "abc") == 3
        threads.close()

    asyncio.run(work())


def test_a_function_that_nobody_waits_for_gives_its_place_away_and_is_cleaned_up_after() -> None:
    async def work() -> None:
        threads, gate, done = Threads(1), threading.Event(), threading.Event()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await threads.run(gate.wait, 60, after_all=done.set)
        assert threads.given_up == 1 and not done.is_set()
        assert await threads.run(len, "abc") == 3
        gate.set()
        assert done.wait(60) and threads.given_up == 0
        threads.close()

    asyncio.run(work())


def test_a_function_that_never_began_is_cleaned_up_without_having_run() -> None:
    async def work() -> None:
        threads, gate, done = Threads(1), threading.Event(), threading.Event()
        ran: list[int] = []
        first = asyncio.create_task(threads.run(gate.wait, 60))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await threads.run(ran.append, 1, after_all=done.set)
        gate.set()
        assert await first and done.wait(60) and not ran and threads.given_up == 0
        threads.close()

    asyncio.run(work())


def test_a_thousand_functions_find_their_threads_whatever_the_order() -> None:
    async def work() -> None:
        threads = Threads(7)
        pauses = [time.sleep] * 50
        results = await asyncio.gather(
            *[threads.run(pow, 2, number) for number in range(1000)], *[threads.run(each, 0.001) for each in pauses]
        )
        assert results[:1000] == [2**number for number in range(1000)] and threads.count <= 7
        threads.close()

    asyncio.run(work())
