"""Settings of every test: no network, one torch thread, interrupts that arrive; what ``--fast`` leaves out; times."""

import functools
import gc
import importlib.util
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# Test modules are imported by name in worker processes, and a few share their settings with others.
for _folder in sorted({path.parent for path in Path(__file__).parent.rglob("test_*.py")}):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))

_alfworld = Path(__file__).parent.parent.parent / "shared" / "data" / "alfworld"
if _alfworld.is_dir():
    os.environ.setdefault("ALFWORLD_DATA", str(_alfworld))

if importlib.util.find_spec("hypothesis"):  # some environments of the integration tests are without it
    from hypothesis import HealthCheck, settings

    # No test depends on the clock: a machine that does something else as well takes its time over an example.
    settings.register_profile("without-deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("without-deadline")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is in what a shell starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

FAST_CASES = 3
"""Of a parametrised test, ``--fast`` runs so many cases: the first, the last and one between."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--fast`` and ``--processor-times``."""
    told = "leave out the tests of slow_tests.txt, and all but three cases of a parametrised test"
    parser.addoption("--fast", action="store_true", help=told)
    told = "append to this file the seconds of processor time of each test, those of its processes included"
    parser.addoption("--processor-times", metavar="FILE", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Give Ray a folder of this process, in which it finds no cluster of another one."""
    short = "/tmp" if Path("/tmp").is_dir() else None  # for the paths of its sockets
    folder = tempfile.mkdtemp(prefix="ray-", dir=short)
    os.environ["RAY_TMPDIR"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def _rewrite_share(config: pytest.Config) -> None:
    """Rewrite the assertions of some test modules, which pytest caches: without a cache, every worker rewrites all."""
    worker = getattr(config, "workerinput", None)
    is_whole = config.option.assertmode == "rewrite" and not config.option.file_or_dir
    if worker is None or sys.dont_write_bytecode or not is_whole:
        return
    modules = sorted(Path(__file__).parent.rglob("test_*.py"))
    for path in modules[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        cached = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
        if not cached.exists() and rewrite.try_makedirs(cached.parent):
            with suppress(SyntaxError):  # collecting the module reports it
                source, code = rewrite._rewrite_test(path, config)
                rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, cached)


@functools.cache
def slow_tests() -> frozenset[str]:
    """Return the names, as in ``test_x.py::test_y``, or files, as in ``test_x.py``, that take long."""
    lines = (Path(__file__).parent / "slow_tests.txt").read_text("utf8").splitlines()
    return frozenset(line.split()[1] for line in lines if not line.startswith("#"))


@functools.cache
def _integration() -> re.Pattern[str]:
    """Match the mark of integration tests, or a module of fixtures with it, and what stands before on the line."""
    texts = {path.stem: path.read_text("utf8") for path in Path(__file__).parent.glob("support/*.py")}
    places = ["pytest.mark.integration", *(name for name, text in texts.items() if "pytest.mark.integration" in text)]
    return re.compile(rf"^(pytestmark = |.*)\b(?:{'|'.join(places)})\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread that are slow as a whole, or that hold nothing of the part that is run."""
    if config.getoption("--fast") and collection_path.name in slow_tests():
        return True
    named = [os.path.abspath(argument.partition("::")[0]) for argument in config.args]
    if str(collection_path) in named or not collection_path.match("test_*.py"):
        return None
    marks = _integration().findall(collection_path.read_text("utf8"))
    is_left_out = {"integration": not marks, "not integration": "pytestmark = " in marks}
    return is_left_out.get(config.option.markexpr) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect no garbage while test modules are imported, and leave theirs alone afterwards: they stay to the end."""
    gc.disable()
    try:
        _rewrite_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
    """With ``--fast``, make no cases of a slow test."""
    is_slow = collector.config.getoption("--fast") and f"{collector.path.name}::{name}" in slow_tests()
    return [] if is_slow else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--fast``, keep a few cases of each test."""
    if not config.getoption("--fast"):
        return
    names = [item.nodeid.partition("[")[0] for item in items]
    cases, seen = Counter(names), Counter[str]()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for name, item in zip(names, items, strict=True):
        count, number = cases[name], seen[name]
        seen[name] += 1
        is_chosen = count <= FAST_CASES or number in (0, count // 2, count - 1)
        (kept if is_chosen else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """With ``--processor-times``, write what a test, with the fixtures set up for it, costs."""
    path, before = item.config.getoption("--processor-times"), _seconds()
    result = yield
    if path:
        with open(path, "a", encoding="utf8") as file:
            file.write(f"{_seconds() - before:.2f} {item.nodeid}\n")
    return result


def _seconds() -> float:
    """Return the processor time of this process, of those that it waited for, and of their forks in ``warm.py``."""
    forks = sys.modules.get("warm")
    return sum(os.times()[:4]) + (forks.spent[0] if forks else 0.0)
