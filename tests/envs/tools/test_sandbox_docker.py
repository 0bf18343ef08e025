"""The Docker backend: what is missing, sessions, ends, nothing left behind, gVisor as its runtime."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sandbox_backends import Backend, backend_of

from turngym.envs.tools.sandbox import Limits, Sandbox, make_sandbox
from turngym.envs.tools.sandbox.docker import DockerSession
from turngym.envs.tools.sandbox.host import SandboxError
from turngym.envs.tools.sandbox.pool import Pool
from turngym.errors import MissingExtra


@pytest.fixture(scope="module")
def backend() -> Backend:
    return backend_of("docker")


@pytest.fixture(scope="module")
def sandbox(backend: Backend) -> Iterator[Sandbox]:
    with backend.make(Limits(wall_seconds=20.0)) as made:
        yield made


def containers(backend: Backend) -> int:
    import docker

    client = docker.DockerClient(base_url=backend.options["url"])
    try:
        return len(client.containers.list(all=True))
    finally:
        client.close()


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(MissingExtra, match=r"turngym\[sandbox\]"):
        make_sandbox("docker")


def test_where_every_backend_is_missing_each_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingExtra, match=r"there is none here.*bubblewrap.*turngym\[sandbox\]"):
        make_sandbox()


@pytest.mark.integration
def test_a_missing_engine_or_image_is_an_error(backend: Backend) -> None:
    with pytest.raises(MissingExtra, match="needs a running Docker engine"):
        make_sandbox("docker", url="unix:///nowhere/sock")
    with pytest.raises(MissingExtra, match="docker pull no/such:image"):
        make_sandbox("docker", url=backend.options["url"], image="no/such:image")


@pytest.mark.integration
def test_variables_and_files_are_kept_within_a_session_and_nowhere_else(sandbox: Sandbox) -> None:
    with sandbox.session() as first, sandbox.session() as second:
        assert first.run("x = 20\nopen('note', 'w').write('hello')").status == "ok"
        assert first.run("print(x + 1, open('note').read())").stdout == "21 hello\n"
        assert second.run("x").status == "error"
        assert second.run("import os; os.listdir('.')").value == "[]"


@pytest.mark.integration
def test_after_a_timeout_and_after_the_container_s_death_the_session_goes_on(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        found = session.run("print('before', flush=True)\nwhile True: pass", wall_seconds=0.5)
        assert (found.status, found.stdout, found.lost_state) == ("timeout", "before\n", True)
        assert isinstance(session, DockerSession)
        session._container.kill()
        assert session.run("1").lost_state
        assert session.run("2").value == "2"


@pytest.mark.integration
def test_big_orders_and_answers_arrive(backend: Backend) -> None:
    with backend.make(Limits(output_kib=2048, wall_seconds=30.0)) as sandbox, sandbox.session() as session:
        assert session.run("x = '" + "a" * 1_000_000 + "'\nlen(x)").value == "1000000"
        assert len(session.run("print(x, x[:500_000])").stdout) == 1_500_002
        assert session.run("import sys\nsys.stderr.write('é' * 1000)").stderr == "é" * 1000


@pytest.mark.integration
def test_a_thousand_calls_and_closed_sessions_leave_no_container(sandbox: Sandbox, backend: Backend) -> None:
    before = containers(backend)
    with sandbox.session() as session:
        assert [session.run(f"{number}").value for number in range(1000)] == [str(number) for number in range(1000)]
        assert containers(backend) == before + 1
        session.run("import os\nfor _ in range(20):\n    if os.fork() == 0: os._exit(0)")
        assert session.run("'still here'").value
    session.close()
    with Pool(sandbox, 2) as pool:
        assert pool.wait_until_full()
        with pool.session() as ready:
            assert ready.run("1 + 1").value == "2"
    assert containers(backend) == before


@pytest.mark.integration
def test_a_container_that_cannot_start_is_an_error_and_leaves_nothing(backend: Backend) -> None:
    before = containers(backend)
    with (
        make_sandbox("docker", python="no-such-python", **backend.options) as sandbox,
        pytest.raises(SandboxError, match="does not start"),
    ):
        sandbox.session()
    with (
        make_sandbox("docker", runtime="no-such-runtime", **backend.options) as sandbox,
        pytest.raises(SandboxError, match="does not start"),
    ):
        sandbox.session()
    assert containers(backend) == before


HOLDER = """
import sys, time
from turngym.envs.tools.sandbox import make_sandbox
session = make_sandbox("docker", image=sys.argv[1], url=sys.argv[2]).session()
print(session.run("1").value, flush=True)
time.sleep(600)
"""


@pytest.mark.integration
def test_what_a_killed_process_left_is_removed_at_the_next_start(backend: Backend, sandbox: Sandbox) -> None:
    before = containers(backend)
    command = [sys.executable, "-c", HOLDER, backend.options["image"], backend.options["url"]]
    with sandbox.session() as mine, subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
        backend.make().close()
        assert containers(backend) == before + 2
        holder.kill()
        holder.wait()
        backend.make().close()
        assert containers(backend) == before + 1 and mine.run("2").value == "2"


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("runsc") is None, reason="runsc is not installed")
def test_gvisor_runs_code_away_from_the_kernel() -> None:
    with backend_of("gvisor").make(Limits(wall_seconds=60.0)) as sandbox, sandbox.session() as session:
        assert session.run("6 * 7").value == "42"
        told = session.run("print(open('/proc/version').read())").stdout
    with open("/proc/version", encoding="utf8") as version:
        assert told.strip() != version.read().strip()
