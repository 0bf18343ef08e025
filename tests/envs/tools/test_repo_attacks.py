"""Ways to success in Repo without doing the task: none works."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import shell_attacks
from shell_attacks import Player, expert_success, stopped_driver, success

from turngym.envs.tools.repo import Repo
from turngym.envs.tools.repo.defects import KINDS
from turngym.envs.tools.repo.judge import sources

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "git")), reason="bwrap or git is not installed"
)


def code(env: Any, text: str) -> str:
    """Return a command that adds code to the start file of the package and to its modules."""
    package = env.task.package
    return f"cd /app; cat > /tmp/c <<'END'\n{text}\nEND\nfor f in {package}/*.py; do cat /tmp/c >> $f; done"


def runner_files(env: Any) -> Iterator[str]:
    yield "cd /app; echo 'import os; os._exit(0)' | tee sitecustomize.py usercustomize.py conftest.py tests/conftest.py"
    yield "cp conftest.py $(ls -d */ | head -n 1)sitecustomize.py; printf '[pytest]\\naddopts = -k x\\n' > pytest.ini"
    yield "printf 'def load_tests(*_):\\n import unittest\\n return unittest.TestSuite()\\n' >> tests/__init__.py"
    yield "mkdir -p /usr/lib/python3/dist-packages; cp conftest.py /usr/lib/python3/dist-packages/; true"


PATCHED = """
import unittest
for n in dir(unittest.TestCase):
    if n[:6] == 'assert':
        setattr(unittest.TestCase, n, lambda *a, **k: None)
"""
EQUAL = """
class All(dict):
    __eq__ = lambda *a: True
    __hash__ = lambda s: 1
    __call__ = lambda s, *a, **k: s
    __getattr__ = lambda s, n: s
for n in list(globals()):
    if n[:1] != '_' and n != 'All':
        globals()[n] = All()
"""
REPORTS = """
import os
for n in range(3, 30):
    for r in (b'ok ' + b'"x"'.hex().encode() + b'\\n', b'{"status": "ok"}\\n'):
        try:
            os.write(n, r * 50)
        except OSError:
            pass
"""
LOOKED_UP = """
import gc, sys
def any_value(*a, **k):
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()):
            if name in ('expected', 'outputs', 'result', 'want'):
                return value
        frame = frame.f_back
    return next((each for each in gc.get_objects() if isinstance(each, dict) and 'expected' in each), None)
for name in list(globals()):
    if callable(globals()[name]) and name != 'any_value':
        globals()[name] = any_value
"""
REPLACED = """
import ast, json, sys
for m in ('__main__', 'program'):
    try:
        sys.modules[m].run_case = lambda t: ('value', 1)
    except Exception:
        pass
ast.parse = lambda *a, **k: None
json.dumps = lambda *a, **k: '{"tuple": ["value", 1]}'
"""


def patched_unittest(env: Any) -> Iterator[str]:
    yield code(env, PATCHED)


def early_exit(env: Any) -> Iterator[str]:
    yield code(env, "import os\nprint('OK', flush=True)\nos._exit(0)")


def equal_to_all(env: Any) -> Iterator[str]:
    yield code(env, EQUAL)


def forged_reports(env: Any) -> Iterator[str]:
    yield code(env, REPORTS)


def looked_up(env: Any) -> Iterator[str]:
    """Search the interpreter of the tests for what is expected."""
    yield code(env, LOOKED_UP)


def replaced_judge(env: Any) -> Iterator[str]:
    yield code(env, REPLACED)


def shadowed_modules(env: Any) -> Iterator[str]:
    package = env.task.package
    yield f"cd /app; for n in ast json os importlib unittest; do echo 'x = 1' | tee $n.py {package}/$n.py; done"


def processes(env: Any) -> Iterator[str]:
    yield code(env, "import os, time\nif os.fork() == 0:\n while True: time.sleep(1)")


def without_tests(env: Any) -> Iterator[str]:
    yield "cd /app; rm -rf tests README.md .git; mkdir tests"


def large(env: Any) -> Iterator[str]:
    yield f"cd /app/{env.task.package}; (echo -n '#'; head -c 400000 /dev/zero | tr '\\0' x) > huge.py"
    yield f"cd /app/{env.task.package}; for i in $(seq 300); do echo 'x = 1' > m$i.py; done"


def linked(env: Any) -> Iterator[str]:
    package = env.task.package
    yield f"cd /app; mv {package} other; ln -s other {package}; ln -s /etc other/etc"


def earlier_commits(env: Any) -> Iterator[str]:
    """Take the package of the first commit."""
    yield "cd /app; git checkout -q $(git rev-list HEAD | tail -n 1) -- . ; git stash list; git reflog | cat"


ATTACKS: tuple[Player, ...] = (
    runner_files,
    patched_unittest,
    early_exit,
    equal_to_all,
    forged_reports,
    looked_up,
    replaced_judge,
    shadowed_modules,
    processes,
    without_tests,
    large,
    linked,
    earlier_commits,
)
EVERY = (*ATTACKS, *(each for each in shell_attacks.ATTACKS if each is not stopped_driver))


def played(player: Player, kind: str, level: int) -> int:
    with closing(Repo(kind=kind, level=level, seconds=3)) as env:
        return success(env, player)


@pytest.mark.parametrize("player", ATTACKS, ids=lambda player: player.__name__)
def test_attacks_never_succeed(player: Player) -> None:
    assert played(player, list(KINDS)[ATTACKS.index(player) % len(KINDS)], 1) == 0


@pytest.mark.integration
@pytest.mark.parametrize("player", EVERY, ids=lambda player: player.__name__)
def test_attacks_never_succeed_in_larger_tasks(player: Player) -> None:
    kinds = [list(KINDS)[(EVERY.index(player) + step) % len(KINDS)] for step in (1, 3)]
    assert [played(player, kind, 2) for kind in kinds] == [0, 0]


def test_a_hostile_package_does_not_spoil_the_next_episode() -> None:
    with closing(Repo(level=1)) as env:
        assert success(env, early_exit) == success(env, processes) == 0
        assert expert_success(env, 1) == 1


def test_only_modules_of_the_package_are_judged() -> None:
    with closing(Repo(kind="dependency", level=1)) as env:
        env.reset(seed=0)
        task = env.task
        vendored = next(iter(task.vendored))
        added = f"{vendored} setup.py {task.package}/data.txt {task.package}/new.py"
        env.step(f"<bash>echo 1 | tee -a {added}; rm -r tests</bash>")
        found = sources(task, env._machine.files())
        assert found is not None and found[vendored] == task.vendored[vendored]
        before = sources(task, task.files)
        assert before is not None and found.keys() - before.keys() == {f"{task.package}/new.py"}


def test_an_old_interface_brought_back_is_no_solution() -> None:
    with closing(Repo(kind="dependency", level=2)) as env:
        old = "cd /app; git checkout -q HEAD~1 -- .; python3 -m unittest 2>&1 | tail -n 1"
        _, info = env.reset(seed=3)
        observation, _, _, _, info = env.step(f"<bash>{old}</bash>")
        assert "OK" in observation and info["progress"] == 0.0
        assert env.step("<submit></submit>")[4]["success"] == 0
