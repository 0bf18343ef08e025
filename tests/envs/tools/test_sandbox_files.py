"""What a sandbox sees of the host's files: an allow-list, on which packages are not, wherever they are installed."""

import ast
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from planted import SEARCH, folders, plant, system_minor

from turngym.envs import tools
from turngym.envs.tools.code_repair.programs import programs
from turngym.envs.tools.sandbox import Sandbox, make_sandbox
from turngym.envs.tools.sandbox.bubblewrap import Bubblewrap
from turngym.envs.tools.sandbox.host import ProcessSession, SandboxError
from turngym.envs.tools.sandbox.launcher import Launch
from turngym.envs.tools.sandbox.system import started, view
from turngym.errors import MissingExtra

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with make_sandbox("bubblewrap") as made:
        yield made


def test_packages_in_folders_of_the_system_cannot_be_read(sandbox: Sandbox) -> None:
    """A copy of a package with a secret lies in every one, in text and in bytecode."""
    with plant() as places:
        code = f"""
for path in {[str(place / "solutions.py") for place in places]!r}:
    try: print(open(path).read())
    except OSError: print('blocked')
"""
        assert set(sandbox.run(code).stdout.split()) == {"blocked"}
        found = sandbox.run(SEARCH)
        assert (found.status, found.stdout) == ("ok", "True []\n"), found


def test_a_real_installation_for_the_system_s_python_gives_no_solution_away(sandbox: Sandbox) -> None:
    """turngym itself is copied to where pip installs for all users; a program looks for it."""
    place = Path(f"/usr/local/lib/python3.{system_minor()}/dist-packages/turngym_{os.getpid()}")
    with folders([place]):
        shutil.copytree(Path(tools.__file__).parent, place / "turngym" / "envs" / "tools")
        code = f"""
import os
print([os.path.join(folder, name) for folder, _, names in os.walk('/') for name in names
       if 'turngym' in folder + name or name.startswith(('programs', 'faults'))])
try: print(open({str(place / "turngym/envs/tools/programs_lists.py")!r}).read()[:100])
except OSError: print('blocked')
"""
        assert sandbox.run(code).stdout.splitlines() == ["[]", "blocked"]


@pytest.mark.parametrize("uninstalled", [1, 3, 4])
def test_packages_uninstalled_while_a_sandbox_starts_do_no_harm(uninstalled: int) -> None:
    """They are gone when Bubblewrap starts, in as many starts; only one that never works is an error."""
    sandbox, starts = Bubblewrap(), 0
    place = Path(f"/usr/lib/python3.{system_minor()}/turngym_{os.getpid()}")

    def launch() -> Launch:
        nonlocal starts
        starts += 1
        if starts > uninstalled:
            return sandbox._launch()
        with folders([place]):
            return sandbox._launch()

    if uninstalled == 4:
        with pytest.raises(SandboxError, match="Can't mkdir"):
            ProcessSession(launch, sandbox.limits)
        return
    session = ProcessSession(launch, sandbox.limits)
    assert session.run("print(1)").stdout == "1\n" and starts == uninstalled + 1
    session.close()


@pytest.mark.parametrize("step", ["bind mount /oldroot/dev/null on /x", "mount tmpfs on /x", "remount readonly on /x"])
def test_a_package_uninstalled_between_two_steps_of_bubblewrap_does_no_harm(step: str) -> None:
    told = [f"the sandbox does not start: bwrap: Can't {step}: No such file or directory."]

    def start() -> str:
        if told:
            raise SandboxError(told.pop())
        return "started"

    assert started(start, SandboxError) == "started"


def test_only_the_interpreter_and_its_libraries_are_there(sandbox: Sandbox) -> None:
    code = """
import json, os, sys
programs = sorted(name for folder in os.environ['PATH'].split(':') for name in os.listdir(folder))
packages = [folder for folder, names, _ in os.walk('/usr') if folder.endswith('-packages') and names]
libraries = [name for folder, _, names in os.walk('/usr/lib') for name in names if '.so' in name]
print(json.dumps([sorted(os.listdir('/')), sorted(set(programs)), packages, len(libraries)]))
"""
    top, names, packages, libraries = json.loads(sandbox.run(code).stdout)
    assert set(top) <= {"bin", "dev", "lib", "lib64", "proc", "tmp", "usr"} and packages == []
    assert all(name == "sh" or name.startswith("python3") for name in names) and libraries < 150


def test_no_device_of_the_host_is_there(sandbox: Sandbox) -> None:
    code = """
import os, stat
print(sorted(name for name in os.listdir('/dev') if stat.S_ISCHR(os.lstat('/dev/' + name).st_mode)))
print([name for name in os.listdir('/dev') if stat.S_ISBLK(os.lstat('/dev/' + name).st_mode)])
for kind in (stat.S_IFBLK, stat.S_IFCHR):
    try: os.mknod('/tmp/device', kind | 0o600, os.makedev(254, 0)); print('made')
    except OSError: print('blocked')
"""
    names, *rest = sandbox.run(code).stdout.splitlines()
    assert set(ast.literal_eval(names)) <= {
        "full",
        "null",
        "random",
        "stderr",
        "stdin",
        "stdout",
        "tty",
        "urandom",
        "zero",
    }
    assert rest == ["[]", "blocked", "blocked"]


def test_no_text_of_a_solution_is_in_reach_of_the_code(sandbox: Sandbox) -> None:
    """Neither in variables, arguments, open files, shared memory nor message queues of any process that is seen."""
    lines = {line.strip() for program in programs().values() for line in program.source.splitlines() if len(line) > 40}
    marks = sorted(line for line in lines if line.startswith(("return", "while", "for")))[:200]
    code = f"""
import os, resource
pieces = []
for pid in [name for name in os.listdir('/proc') if name.isdecimal()] + ['self']:
    if pid == str(os.getpid()) or pid == 'self': continue  # its memory holds this question
    for name in ('environ', 'cmdline', 'maps', 'mem', 'status'):
        try: pieces.append(open(f'/proc/{{pid}}/{{name}}', 'rb').read(10**6))
        except OSError: pass
    try: names = os.listdir(f'/proc/{{pid}}/fd')
    except OSError: names = []
    for number in names:
        try: pieces.append(os.readlink(f'/proc/{{pid}}/fd/{{number}}').encode())
        except OSError: pass
for name in ('sysvipc/shm', 'sysvipc/msg', 'sysvipc/sem', 'keys', 'kcore', 'kmsg', 'cmdline'):
    try: pieces.append(open('/proc/' + name, 'rb').read(10**6))
    except OSError: pass
pieces += [name.encode() for name in os.listdir('/dev/shm')]
for number in range(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0]):
    try: pieces.append(os.readlink(f'/proc/self/fd/{{number}}').encode())
    except OSError: pass
everything = b'\\0'.join(pieces)
print([mark for mark in {marks!r} if mark.encode() in everything], len(everything) > 0)
print(sorted(os.environ))
"""
    found, variables = sandbox.run(code).stdout.splitlines()
    assert found == "[] True"
    assert set(ast.literal_eval(variables)) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "PWD", "PYTHONHASHSEED"}


def test_an_interpreter_that_is_missing_or_broken_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match="apt-get install python3"):
        view(str(tmp_path / "python3"))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no library >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(MissingExtra, match=r"with its whole library.*no library"):
        view(str(broken))


def test_another_interpreter_shows_its_own_library_without_packages() -> None:
    """This one's own, whose packages lie within the folder of its standard library."""
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    if not base.exists():
        pytest.skip("this interpreter lies elsewhere")
    seen = view(str(base))
    library = os.path.realpath(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}))
    assert (library, library) in seen.binds
    inside = Path(library, "site-packages")
    assert not inside.is_dir() or inside in seen.hidden()
