"""Limits on processor time, and chat templates that would take for ever."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from small import small_model

from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting import chat_template
from turngym.agents.prompting import time_limit as time_limits
from turngym.agents.prompting.chat_template import ChatTemplate, RenderTimeout
from turngym.agents.prompting.time_limit import time_limit

LOOPS = "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3
"""More than a thousand years."""


class TooLong(Exception):
    """Raised by the limit."""


def spin(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 60  # for a limit that does not work
    while not until() and time.monotonic() < end:
        pass


def test_a_loop_is_ended_in_any_thread_and_no_other_thread_is_hit() -> None:
    ended: list[str] = []

    def loop(name: str, seconds: float) -> None:
        try:
            with time_limit(seconds, TooLong):
                spin(lambda: len(ended) == 1 and name == "innocent")
        except TooLong:
            ended.append(name)

    threads = [threading.Thread(target=loop, args=given) for given in (("innocent", 1000.0), ("endless", 0.1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ended == ["endless"]


def test_waiting_costs_no_processor_time_and_what_follows_is_not_interrupted() -> None:
    with time_limit(0.2, TooLong):
        time.sleep(0.6)
    for _ in range(5):
        with time_limit(0.01, TooLong):
            pass
        spin(lambda: True)
        time.sleep(0.1)


def test_a_forked_process_has_a_limit_of_its_own() -> None:
    with time_limit(60.0, TooLong):
        pass
    child = os.fork()
    if not child:
        try:
            with time_limit(0.1, TooLong):
                spin(lambda: False)
        except TooLong:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("condition", ["true", "messages|length > 1"])
def test_a_template_with_nested_loops_is_refused_or_fails_its_conversation(
    monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    monkeypatch.setattr(chat_template, "RENDER_SECONDS", 0.1)
    template = "{% if " + condition + " %}" + LOOPS + "{% endif %}{{ messages[-1]['content'] }}"
    tokenizer: Any = small_model().tokenizer

    def render() -> str:
        made = ChatTemplate(tokenizer, PromptConfig(chat_template=template))
        assert made.render([("user", "hello")], False) == "hello"
        return made.render([("user", "one"), ("assistant", "two"), ("user", "three")], True)

    with pytest.raises(RenderTimeout, match=r"the chat template takes more than 0\.1 seconds"):
        render()


def test_an_exception_that_lands_at_the_end_of_a_block_blocks_no_thread_and_does_not_leak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of about the length of their limits, watched all the time."""
    monkeypatch.setattr(time_limits, "_LOOK_SECONDS", 0.0005)
    counts = {"raised": 0, "ended": 0, "outside": 0}

    def work(number: int) -> None:
        for _ in range(400):
            try:
                try:
                    with time_limit(0.0004 * (number % 3 + 1), TooLong):
                        sum(k for k in range(3000 + 1000 * number))
                    counts["ended"] += 1
                except TooLong:
                    counts["raised"] += 1
                sum(k for k in range(50))
            except TooLong:
                counts["outside"] += 1
        with pytest.raises(TooLong), time_limit(0.0004, TooLong):
            while True:
                sum(k for k in range(50))
        counts["raised"] += 1

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)
    assert counts["raised"] >= 6 and not counts["outside"], counts
