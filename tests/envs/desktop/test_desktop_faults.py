"""What happens when things break: programs, display, window manager and the process that owns it all; and isolation."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desktop_parts import comes_true, process_named, process_of, send, skip_without_programs
from planted import SECRET, plant

from turngym.envs.desktop.env import Desktop
from turngym.envs.desktop.sandbox import PYTHON, command
from turngym.envs.desktop.session import DesktopFault, DesktopSession
from turngym.envs.vector import make_vec
from turngym.system.processes import descendants, has_ended

skip_without_programs()
pytestmark = pytest.mark.integration


@pytest.fixture
def env() -> Iterator[Desktop]:
    made = Desktop("add-line")
    yield made
    made.close()


def solve(env: Any) -> float:
    while True:
        _, reward, terminated, truncated, _ = env.step(env.expert_action())
        if terminated or truncated:
            return float(reward)


def test_whatever_is_killed_is_a_fault_and_the_next_episode_is_sound(env: Desktop) -> None:
    for number, (name, said) in enumerate(
        [("mousepad", "mousepad has ended"), ("Xvfb", "display"), ("openbox", "window manager"), ("python3", "ended")]
    ):
        env.reset(seed=number)
        session = env.slot.session
        assert session is not None
        family = descendants(session.pid)
        send(env, name, signal.SIGKILL)
        with pytest.raises(DesktopFault, match=said):
            for _ in range(3):
                env.step("key End")
        assert comes_true(lambda family=family: all(map(has_ended, family)))  # type: ignore[misc]
        assert not session.scratch.exists()
    env.reset(seed=9)
    assert solve(env) == 1.0


def test_a_program_that_has_died_between_episodes_costs_no_fault(env: Desktop) -> None:
    env.reset(seed=0)
    send(env, "Xvfb", signal.SIGKILL)
    env.reset(seed=1)
    assert solve(env) == 1.0 and env.slot.starts == 2


@pytest.mark.parametrize("name", ["mousepad", "Xvfb"])
def test_what_hangs_is_a_fault_within_the_limit(name: str) -> None:
    env = Desktop("add-line", limit_seconds=10.0)
    env.reset(seed=0)
    assert env.slot.session is not None
    family = descendants(env.slot.session.pid)
    env.slot.session._limit = 0.2  # how much longer than the inside the outside waits
    send(env, name, signal.SIGSTOP)
    with pytest.raises(DesktopFault, match="does not answer"):
        env.step("key End")
    assert comes_true(lambda: all(map(has_ended, family)))
    env.close()


def test_a_fault_stays_in_its_slot_and_slots_do_not_see_each_other() -> None:
    vector = make_vec("turngym/Desktop-v0", 2, task="write-note", backend="thread")
    vector.reset(seed=[3, 4])
    slots = vector.get_attr("slot")
    assert slots[0].session.scratch != slots[1].session.scratch
    vector.step(("click 300 300", "click 300 300"))
    vector.step(('type "only the first"', "wait"))
    vector.step(("key ctrl+s", "key ctrl+s"))
    assert [slot.folder.text("notes.txt").strip() for slot in slots] == ["only the first", ""]
    os.kill(process_of(slots[0], "mousepad"), signal.SIGKILL)
    *_, terminations, truncations, infos = vector.step(("key End", "key End"))
    assert "mousepad has ended" in infos.rows[0]["fault"] and infos.rows[1]["fault"] == ""
    assert truncations.tolist() == [True, False] and terminations.tolist() == [False, False]
    while not terminations[-1]:  # the other goes on as if nothing had happened
        action = vector.call("expert_action", indices=[1])
        _, rewards, terminations, *_ = vector.step(action, [1])
    assert rewards[-1] == 1.0
    vector.close()


def test_closing_leaves_nothing_behind(env: Desktop) -> None:
    env.reset(seed=0)
    session = env.slot.session
    assert session is not None
    family = descendants(session.pid)
    assert len(family) >= 5  # bwrap twice, the inside, display, window manager, program
    assert {"Xvfb", "openbox", "mousepad"} <= {Path(f"/proc/{each}/comm").read_text().strip() for each in family}
    env.close()
    env.close()
    assert comes_true(lambda: all(map(has_ended, family))) and not session.scratch.exists()
    env.reset(seed=0)  # a closed environment opens again
    assert process_named(env, "mousepad")


_OWNER = """
import sys
from turngym.envs.desktop.env import Desktop
from turngym.system.processes import descendants
env = Desktop("add-line")
env.reset(seed=0)
print(*descendants(env.slot.session.pid), env.slot.session.scratch, flush=True)
sys.stdin.read()
"""


def test_a_killed_owner_leaves_no_process() -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    *family, scratch = owner.stdout.readline().split()
    assert len(family) >= 5 and not any(has_ended(int(each)) for each in family)
    owner.kill()
    owner.communicate()
    assert comes_true(lambda: all(has_ended(int(each)) for each in family))
    subprocess.run(["rm", "-r", scratch], check=True)


_PROBE = """
import os, socket
for name in ("/", "/home", "/opt", "/etc"): print(name, sorted(os.listdir(name)))
print("user", os.getuid(), "devices", sorted(os.listdir("/sys/class/net")) if os.path.exists("/sys") else "none")
print("processes", len([name for name in os.listdir("/proc") if name.isdigit()]))
for place in ("/usr/x", "/etc/x", "/x", "/opt/x"):
    try: open(place, "w"); print("wrote", place)
    except OSError: pass
try: socket.create_connection(("192.0.2.1", 80), 5); print("connected")
except OSError as error: print("network", error.errno in (101, 113))
print(sorted(os.environ))
"""


def test_the_sandbox_shows_no_network_no_process_and_no_file_of_the_host(tmp_path: Path) -> None:
    for name in ("home", "screen"):
        (tmp_path / name).mkdir()
    (tmp_path / "passwd").touch()
    words = command(tmp_path)
    probe = [*words[: words.index("--") + 1], PYTHON, "-S", "-c", _PROBE]
    said = subprocess.run(probe, capture_output=True, text=True, timeout=600, env={"SECRET": "x"}, check=True).stdout
    facts = dict(line.split(" ", 1) for line in said.splitlines()[:-1])
    assert facts["/home"] == "['user']" and "'root'" not in facts["/"] and "'work'" not in facts["/"]
    assert "shadow" not in facts["/etc"] and facts["user"] == "1000 devices none"
    assert facts["network"] == "True" and "wrote" not in facts and int(facts["processes"]) <= 3
    assert "SECRET" not in said and "DISPLAY" in said


def test_packages_and_so_the_goals_are_not_in_the_desktop_s_sight(tmp_path: Path) -> None:
    for name in ("home", "screen"):
        (tmp_path / name).mkdir()
    (tmp_path / "passwd").write_text("user:x:1000:1000::/home/user:/bin/sh\n")
    with plant() as places:
        words = command(tmp_path)
        code = f"""
import os
for path in {[str(place / "solutions.py") for place in places]!r}:
    try: print(open(path).read())
    except OSError: print('blocked')
print([path for path, folders, names in os.walk('/') if path.endswith('-packages') and folders + names])
print([path for path, folders, names in os.walk('/') for name in names if name.startswith(('goal', 'programs_'))
       and 'turngym' in path])
print({SECRET!r} in str(os.environ), os.path.exists('/usr/local'))
"""
        probe = [*words[: words.index("--") + 1], PYTHON, "-S", "-c", code]
        done = subprocess.run(probe, capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout.split("\n")[:-1] == ["blocked"] * len(places) + ["[]", "[]", "False False"], done


def test_a_picture_that_is_cut_off_is_a_fault_and_not_the_end_of_this_process(env: Desktop) -> None:
    env.reset(seed=0)
    session = env.slot.session
    assert session is not None
    os.truncate(session.scratch / "screen" / "Xvfb_screen0", 0)
    with pytest.raises(DesktopFault, match="picture"):
        session.picture()
    env.reset(seed=1)
    assert solve(env) == 1.0


def test_nothing_that_programs_leave_anywhere_reaches_the_next_episode(env: Desktop) -> None:
    env.reset(seed=0)
    session = env.slot.session
    assert session is not None
    for place in ("/screen", "/tmp"):
        for action in ("key ctrl+shift+s", "key ctrl+a", f'type "{place}/left.txt\\n"'):
            env.step(action)
        assert env.slot.windows[0].title.startswith(f"{place}/left.txt")
    root = Path(f"/proc/{process_named(env, 'Xvfb')}/root")
    assert (root / "screen" / "left.txt").exists() and (root / "tmp" / "left.txt").exists()
    for place in ("dev", "dev/shm", "run/user", "opt", "etc"):
        with pytest.raises(OSError, match="Read-only"):
            (root / place / "left.txt").touch()
    env.reset(seed=1)
    assert env.slot.session is session, "the display stays"
    assert not list(root.glob("*/left.txt"))
    assert solve(env) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "[" * 200_000,
        "[]",
        "{}",
        '{"windows": [{}], "digest": ""}',
        '{"windows": [7], "digest": ""}',
        '{"windows": [{"title": 1, "kind": "x", "x": 1, "y": 1, "width": 1, "height": 1, "has_focus": 1}], '
        '"digest": 1}',
        "9" * 5000,
    ],
)
def test_whatever_answers_from_inside_is_a_fault_at_worst(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = DesktopSession(800, 600)
    monkeypatch.setattr(session, "_line", lambda deadline: answer.encode())
    with pytest.raises(DesktopFault):
        session.act({"kind": "wait"})
    assert not session.scratch.exists()
