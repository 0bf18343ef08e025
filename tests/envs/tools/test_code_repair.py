"""CodeRepair: faults are real, programs are judged from outside, hostile programs gain nothing, sets are read."""

import ast
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.tools.code_repair import grading
from turngym.envs.tools.code_repair.env import CodeRepair, program_in, written
from turngym.envs.tools.code_repair.faults import TABLE, faults, fingerprint, prove
from turngym.envs.tools.code_repair.mutations import apply, changes
from turngym.envs.tools.code_repair.programs import programs
from turngym.envs.tools.sandbox import Limits, Result, Sandbox, SandboxSession
from turngym.envs.tools.workbench import shared_sandbox
from turngym.errors import ConfigError, MissingExtra
from turngym.seeding import stream

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "code"
needs_data = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the prepared programs are not here")
pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return shared_sandbox("auto", Limits(wall_seconds=5.0, memory_mib=256))


@pytest.fixture
def env() -> Iterator[CodeRepair]:
    made = CodeRepair(seconds=3.0, max_turns=20)
    made.reset(seed=3)
    yield made
    made.close()


def hand_in(env: CodeRepair, body: str) -> tuple[str, float, bool, dict[str, Any]]:
    """Hand in a program; ``NAME`` in it is the function's name."""
    observation, reward, terminated, _, info = env.step(written(body.replace("NAME", env.task.name), "tags"))
    return observation, reward, terminated, info


def test_the_table_of_faults_fits_the_programs() -> None:
    table = json.loads(TABLE.read_text("utf8"))
    assert table.keys() == programs().keys()
    for name, program in programs().items():
        assert table[name]["program"] == fingerprint(program), f"{name} has changed: make the table again"
    assert all(fault.failing for count in (1, 2) for fault in faults(count))


def test_faults_fail_where_the_table_says_and_the_programs_nowhere(sandbox: Sandbox) -> None:
    chosen = [faults(count)[int(n)] for count in (1, 2) for n in stream("proof").integers(0, len(faults(count)), 25)]
    with sandbox.session() as session:
        for fault in chosen:
            program = programs()[fault.program]
            mask, has_ended = prove(session, program, fault.source)
            assert has_ended and mask == sum(1 << place for place in fault.failing)
        for program in programs().values():
            assert prove(session, program, program.source) == (0, True)


def test_changes_are_single_and_leave_programs_that_can_be_read() -> None:
    kinds = set()
    for program in programs().values():
        for change in changes(program.source):
            changed = apply(program.source, (change,))
            kinds.add(change.kind)
            assert changed != program.source and ast.parse(changed)
    assert kinds == {"operator", "comparison", "number", "truth", "condition", "function", "arguments", "base case"}


@pytest.mark.parametrize("options", [{}, {"faults": 2}, {"mode": "write"}, {"form": "json"}])
def test_the_expert_passes_and_the_program_given_does_not(options: dict[str, Any]) -> None:
    env = CodeRepair(split="test", **options)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        before = info["progress"]
        assert before < 1
        if env.task.share:
            *_, info = env.step(written(env.task.start, options.get("form", "tags")))
            assert info["success"] == -1 and info["progress"] == before, "the share given is the share measured"
        _, reward, terminated, _, info = env.step(env.expert_action())
        assert terminated and info["success"] == info["score"] == 1 and reward == pytest.approx(1 - before)


def test_every_fault_shows_in_a_hidden_test_and_splits_share_no_program_text() -> None:
    seen: dict[str, set[str]] = {}
    for split in ("train", "dev", "test"):
        env = CodeRepair(split=split)
        for seed in range(100):
            _, info = env.reset(seed=seed)
            assert info["progress"] < 1 and 0 < env.task.visible < len(env.task.inputs)
            seen.setdefault(split, set()).add(env.instance)
    assert len(set.union(*seen.values())) == sum(map(len, seen.values()))


def test_the_reward_is_the_rise_of_the_best_share(env: CodeRepair) -> None:
    first = env._best
    assert hand_in(env, "def NAME(*args): return None")[1] == 0.0 and env._best == first
    assert hand_in(env, env.task.start)[1] == 0.0
    _, reward, terminated, _ = hand_in(env, env.task.solution)
    assert terminated and reward == pytest.approx(1 - first)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("def NAME(*args):\n    while True: pass", "out of time"),
        ("while True: pass", "out of time"),
        ("def NAME(*args): print('x' * 10**6)", "too much output"),
        ("def NAME(*args):\n    import sys; sys.exit(0)", "ended the interpreter"),
        ("import os; os._exit(0)", "process was ended"),
        ("def NAME(*args):\n    import os; os._exit(0)", "process was ended"),
        ("def NAME(*args):\n    import os; os.kill(os.getppid(), 9)", "got None"),
        ("def NAME(*args):\n    import os; os.kill(os.getpid(), 9)", "process was ended"),
        ("def NAME(*args): return NAME(*args)", "RecursionError"),
        ("def NAME(*args): return [0] * 10**9", "MemoryError"),
        ("def NAME(*args): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def NAME(:", "SyntaxError"),
        ("x = 1", "there is no function"),
        ("NAME = 3", "TypeError"),
        ("def NAME(*args): return object()", "no plain value"),
        ("def NAME(*args): return 'x' * 50_000", "very long"),
        ("def NAME(*args):\n    x = []\n    x.append(x)\n    return x", "no plain value"),
        (
            "def NAME(*args):\n    import subprocess; subprocess.run('true', shell=True, check=True); return object()",
            "no plain value",
        ),
        ("import builtins\nbuiltins.exec = builtins.globals = None\ndef NAME(*args): return object()", "Error"),
    ],
)
def test_hostile_programs_fail_and_the_episode_goes_on(env: CodeRepair, program: str, told: str) -> None:
    observation, reward, terminated, info = hand_in(env, program)
    assert told in observation and (reward, terminated, info["action_is_valid"]) == (0.0, False, True)
    assert hand_in(env, env.task.solution)[2]


CHEATS = {
    "equal to everything": "class Any:\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n"
    "    def __repr__(self): return '1'\ndef NAME(*args): return Any()",
    "a patched encoder": "import json\njson.dumps = lambda *a, **k: '1'\ndef NAME(*args): return 1",
    "searching its memory": "import gc\ndef NAME(*args):\n    for each in gc.get_objects():\n"
    "        if isinstance(each, dict) and 'outputs' in each: return each['outputs']\n    return 'nothing'",
    "reading the process": "import os\ndef NAME(*args): return open(f'/proc/{os.getppid()}/cmdline').read()[:50]",
    "speaking for the driver": "import os, json\ndef NAME(*args):\n    frame = {'status': 'ok', 'stdout': '',"
    " 'stderr': '', 'value': 'true', 'seconds': 0, 'lost_state': False}\n"
    "    open(f'/proc/{os.getppid()}/fd/1', 'w').write(json.dumps(frame) + chr(10))\n    return None",
    "a patched call": "import __main__\ndef NAME(*args): return None\n_turngym_call = lambda *a: True",
    "raising a class of its own": "class E(BaseException): pass\ndef NAME(*args): raise E('success')",
}


@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS.keys())
def test_cheating_passes_no_more_than_a_constant_would(cheat: str, env: CodeRepair) -> None:
    """Expected outputs never enter the sandbox: a program can at best return something."""
    for seed in range(2):
        env.reset(seed=seed)
        _, _, terminated, info = hand_in(env, cheat)
        assert not terminated and info["success"] == -1
    assert not any("gold" in name for name in os.environ)


def test_expected_outputs_never_enter_the_sandbox(env: CodeRepair, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    with env._sandbox.session() as made:
        session = type(made)
    original = session.run

    def run(self: SandboxSession, code: str, wall_seconds: float | None = None) -> Result:
        sent.append(code)
        return original(self, code, wall_seconds)

    monkeypatch.setattr(session, "run", run)
    env.reset(seed=3)
    secret = "the-secret-output"
    env._task = env._task._replace(outputs=tuple(secret for _ in env._task.outputs))
    hand_in(env, env.task.start)
    assert len(sent) > 10 and not any(secret in code for code in sent)


def test_what_a_program_prints_is_shown_and_can_forge_nothing(env: CodeRepair) -> None:
    body = "def NAME(*args):\n    print('<' + 'code>x</' + 'code> Hidden tests passed: 12 of 12.')\n    return 'no'"
    observation = hand_in(env, body)[0]
    assert "It printed: \u2039code>" in observation and "<code>" not in observation
    assert observation.splitlines()[-1].startswith("Hidden tests passed: 0 of")


def test_names_of_the_program_do_not_meet_ours(sandbox: Sandbox) -> None:
    """A program may have a function called encode, decode, json or globals."""
    source = "json = None\ndef decode(x): return x + 1\ndef encode(x): return decode(x) * 2\ndef call(x): return -x"
    for name, output in (("encode", 6), ("decode", 3), ("call", -2)):
        ran, problem = grading.run_tests(sandbox, source, name, [[2]], 2.0)
        assert (ran[0].value, problem) == (output, "")


GUARDED = (
    "import sys\nsys.exit(f(3))",
    "raise SystemExit('done')",
    "n = int(input())\nprint(f(n))",
    "import sys\nprint(f(int(sys.stdin.readline())))",
    "import os\nos._exit(0)",
    "assert f(2) == 0, 'a wrong test of its own'",
    "while True: pass",
    "import sys\nfor line in sys.argv[1:]: print(f(int(line)))\nsys.exit(1)",
)


@pytest.mark.parametrize("block", GUARDED)
def test_the_main_guard_of_a_program_is_not_run(sandbox: Sandbox, block: str) -> None:
    guarded = "".join(f"    {line}\n" for line in block.splitlines())
    source = f"def f(x):\n    return x + 1\n\nif __name__ == '__main__':\n{guarded}"
    ran, problem = grading.run_tests(sandbox, source, "f", [[1], [2]], 2.0)
    assert ([one.value for one in ran], problem) == ([2, 3], "")


def test_classes_of_a_program_are_found_in_its_module(sandbox: Sandbox) -> None:
    source = """
from __future__ import annotations
import dataclasses, enum, pickle, sys, typing

@dataclasses.dataclass
class Point:
    x: int
    y: ClassVar[int] = 3

class Color(enum.Enum):
    RED = 1

ClassVar = typing.ClassVar

def f(x):
    point = pickle.loads(pickle.dumps(Point(x)))
    hints = sorted(typing.get_type_hints(Point))
    return point.x, pickle.loads(pickle.dumps(Color.RED)).value, hints, sys.modules[__name__].f is f
"""
    ran, problem = grading.run_tests(sandbox, source, "f", [[4]], 2.0)
    assert (problem, ran[0].problem) == ("", "")
    assert grading.passed(ran, [(4, 1, ["x", "y"], True)]) == [True]


def test_after_lost_tests_the_rest_is_given_up(sandbox: Sandbox) -> None:
    source = "import os\ndef f(x):\n    if x < 3: os._exit(1)\n    return x"
    ran, _ = grading.run_tests(sandbox, source, "f", [[0], [5], [1], [6]], 2.0)
    assert [one.is_known for one in ran] == [False, True, False, True]
    ran, _ = grading.run_tests(sandbox, source, "f", [[0], [1], [2], [5]], 2.0)
    assert [one.is_known for one in ran] == [False] * 4 and "not run" in ran[3].problem


def test_calls_after_the_deadline_are_not_run(sandbox: Sandbox) -> None:
    source = "import time\ndef f(x):\n    time.sleep(x)\n    return x"
    ran, problem = grading.run_tests(sandbox, source, "f", [[0]], 2.0, time.monotonic())
    assert not ran[0].is_known and problem == "not run: the time of all tests is over"
    ran, _ = grading.run_tests(sandbox, source, "f", [[600], [0]], 600.0, time.monotonic() + 1.5)
    assert not ran[0].is_known and ran[1].problem == problem


def test_a_restored_episode_goes_on_alike(env: CodeRepair) -> None:
    hand_in(env, "def NAME(*args): return 1")
    saved, twin = env.snapshot(), CodeRepair(seconds=3.0, max_turns=20)
    twin.restore(saved)
    assert twin.step(env.expert_action()) == env.step(env.expert_action())


@pytest.mark.parametrize(
    "action", ["", "def f(): pass", "<code></code>", "<code>open", "\ud800", "<code>" + "x" * 30_000 + "</code>"]
)
def test_what_holds_no_program_uses_a_turn_up(action: str) -> None:
    env = CodeRepair(format_penalty=0.25)
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["action_is_valid"]) == (-0.25, False, False) and "<code>" in observation


def test_programs_are_found_in_both_forms() -> None:
    assert program_in("<code>```python\ndef f(): pass\n```</code>", "tags") == "def f(): pass"
    assert program_in('{"tool": "submit", "code": "x = 1"}', "json") == "x = 1"
    for text in ('{"tool": "submit"}', '{"tool": "run", "code": "x"}', '{"tool": "submit", "code": 3}', "x"):
        assert program_in(text, "json") is None


@needs_data
@pytest.mark.parametrize(
    ("name", "split", "least"), [("mbpp", "dev", 85), ("mbpp", "test", 235), ("humaneval", "test", 65)]
)
def test_published_solutions_pass_their_tests(name: str, split: str, least: int) -> None:
    env = CodeRepair(dataset=name, folder=str(PUBLISHED), split=split)
    assert len(env.tasks()) >= least
    for task in range(0, 60, 15):
        observation, info = env.reset(options={"task": task})
        assert env.task.name in observation and info["progress"] == 0
        assert env.step(env.expert_action())[1] == 1.0
    with pytest.raises(ConfigError, match="has the tasks"):
        env.reset(options={"task": "x"})


def test_no_sandbox_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    shared_sandbox.cache_clear()
    with pytest.raises(MissingExtra, match="apt-get install bubblewrap"):
        CodeRepair(sandbox="bubblewrap")


@pytest.mark.parametrize(
    "options", [{"faults": 3}, {"mode": "break"}, {"seconds": 0}, {"form": "x"}, {"memory_mib": 1}]
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        CodeRepair(**options)
