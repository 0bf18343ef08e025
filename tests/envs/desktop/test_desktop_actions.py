"""What an agent writes on a desktop and what it means; waiting for processes to rest, on real processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from turngym.envs.desktop import rest
from turngym.envs.desktop.actions import FORMAT, LONGEST_TEXT, read, typed
from turngym.envs.desktop.keys import MODIFIERS, NAMED, chord, keysym
from turngym.envs.desktop.rest import SOON_MS, sample, timer_ms, wait_for_rest

EVERY_FORM_IS_READ: list[tuple[str, str, object, object, int]] = [
    ("click 1 2", "click", (1, 2), (0, 0), 1),
    ("CLICK (10, 20)", "click", (10, 20), (0, 0), 1),
    ("double_click 3,4", "double_click", (3, 4), (0, 0), 1),
    ("right_click 3 4", "right_click", (3, 4), (0, 0), 1),
    ("move 5 6", "move", (5, 6), (0, 0), 1),
    ("drag 1 2 to 3 4", "drag", (1, 2), (3, 4), 1),
    ("scroll 1 2 down", "scroll", (1, 2), (0, 0), 3),
    ("scroll 1 2 up 20", "scroll", (1, 2), (0, 0), 20),
    (" wait ", "wait", (0, 0), (0, 0), 1),
    ("done", "done", (0, 0), (0, 0), 1),
]


def test_every_form_is_read() -> None:
    for text, kind, at, to, times in EVERY_FORM_IS_READ:
        action = read(text)
        assert action is not None
        assert (action.kind, action.at, action.to, action.times) == (kind, at, to, times)
        assert action.order()["kind"] == kind


WHAT_IS_NO_ACTION_IS_NONE: list[str] = [
    "",
    "click",
    "click 1",
    "click -1 2",
    "click 1 2 3",
    "click 1.5 2",
    "drag 1 2 3 4",
    "scroll 1 2 left",
    "scroll 1 2 down 0",
    "scroll 1 2 down 21",
    "key",
    "key nokey",
    "key ctrl+ctrl+a",
    "key super+a",
    "type",
    'type ""',
    'type "\x07"',
    "type " + "x" * LONGEST_TEXT,
    "done now",
    "import os",
]


def test_what_is_no_action_is_none() -> None:
    for text in WHAT_IS_NO_ACTION_IS_NONE:
        assert read(text) is None


def test_typed_texts_come_back_as_they_were() -> None:
    for text in ("plain", 'a "quote"', "back\\slash", "two\nlines\tand a tab\n", "naïve λόγος – 100 %", '"', "\\n"):
        action = read(typed(text))
        assert action is not None and action.text == text
    assert read("type without quotes").text == "without quotes"  # type: ignore[union-attr]


def test_keys_have_the_numbers_of_x() -> None:
    assert chord("ctrl+shift+s") == (MODIFIERS["ctrl"], MODIFIERS["shift"], ord("s"))
    assert chord("ctrl++") == (MODIFIERS["ctrl"], ord("+")) and chord("+") == (ord("+"),)
    assert chord("F12") == (0xFFC9,) and chord("esc") == chord("Escape") == (0xFF1B,)
    assert chord("PageDown") == (NAMED["Page_Down"],) and chord("Control+End") == (MODIFIERS["ctrl"], NAMED["End"])
    assert [keysym(each) for each in "é€\x00\x7f"] == [0xE9, 0x010020AC, None, None]
    assert all(name in FORMAT for name in ("click", "double_click", "right_click", "drag", "scroll", "type", "key"))


@pytest.fixture
def start() -> Iterator[object]:
    started: list[subprocess.Popen[str]] = []

    def starter(code: str) -> int:
        command = [sys.executable, "-S", "-c", f"import select, time; print(flush=True); {code}"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        started[-1].stdout.readline()
        return started[-1].pid

    yield starter
    for process in started:
        process.kill()
        process.communicate()


def until(condition: object) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.01)
    return False


def can_tell() -> bool:
    try:
        timer_ms(os.getpid())
    except OSError:
        return False
    return True


def test_a_process_that_waits_for_an_event_is_at_rest_and_one_that_works_is_not(start) -> None:  # type: ignore[no-untyped-def]
    waiting, working = start("select.poll().poll()"), start("[None for _ in iter(int, 1)]")
    assert wait_for_rest(lambda: 0, 30, lambda: [waiting])
    assert not wait_for_rest(lambda: 0, 0.3, lambda: [waiting, working])
    assert sample([10**9]) is not None  # it has ended: nothing to wait for


def test_a_picture_that_changes_is_no_rest(start) -> None:  # type: ignore[no-untyped-def]
    waiting = start("select.poll().poll()")
    numbers = iter(range(10**9))
    assert not wait_for_rest(lambda: next(numbers), 0.3, lambda: [waiting])


@pytest.mark.skipif(not can_tell(), reason="the kernel does not tell what a process waits for")
def test_a_timer_that_is_about_to_end_is_waited_for_and_a_distant_one_is_not(start) -> None:  # type: ignore[no-untyped-def]
    soon, distant = start("select.poll().poll(200); select.poll().poll()"), start("select.poll().poll(900_000)")
    assert until(lambda: timer_ms(distant) == 900_000.0)
    assert wait_for_rest(lambda: 0, 30, lambda: [soon, distant])
    assert timer_ms(soon) is None  # it came to the second wait, so the first was over
    ever = start("[select.poll().poll(60) for _ in iter(int, 1)]")
    assert until(lambda: (found := sample([ever])) is not None and found.timer == 60) and SOON_MS > 60
    assert wait_for_rest(lambda: 0, 120, lambda: [ever])  # one that never ends is not waited for forever


def test_without_word_from_the_kernel_a_longer_calm_has_to_do(start, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def nothing(_: int) -> None:
        raise PermissionError("not yours")

    waiting, looks = start("select.poll().poll()"), []
    monkeypatch.setattr(rest, "timer_ms", nothing)
    assert until(lambda: (found := sample([waiting])) is not None and found.is_blind)
    assert wait_for_rest(lambda: looks.append(0) or 0, 60, lambda: [waiting])  # type: ignore[func-returns-value]
    assert len(looks) > 60
