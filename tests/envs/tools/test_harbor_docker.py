"""Harbor tasks whose Dockerfile needs Docker: built once, played, verified, forged; skipped where no engine runs."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import harbor_folders as folders
import pytest
from sandbox_backends import IMAGE, SHARED, engine_url

from turngym.__main__ import main
from turngym.envs.tools.harbor import Harbor, docker_images
from turngym.envs.tools.harbor.box import BoxError
from turngym.errors import ConfigError, MissingExtra, SnapshotUnsupported

pytestmark = pytest.mark.integration
GVISOR = pytest.mark.skipif(shutil.which("runsc") is None, reason="runsc (gVisor) is not installed")
SUBMIT = "<submit></submit>"
DOCKERFILE = f"FROM {IMAGE}\nWORKDIR /app\nCOPY data.txt /app/\nRUN cp data.txt built.txt\nENV WORD=hello\n"
Maker = Callable[..., Harbor]


def bash(command: str) -> str:
    return f"<bash>{command}</bash>"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    """Make environments whose boxes are containers of the tests' own engine."""
    monkeypatch.setenv("DOCKER_HOST", engine_url())
    docker_images.client.cache_clear()
    opened: list[Harbor] = []

    def make(files: dict[str, str], dockerfile: str = DOCKERFILE, **options: Any) -> Harbor:
        place = folders.write(tmp_path / f"task{len(opened)}", {**files, "environment/Dockerfile": dockerfile})
        env = gymnasium.make("turngym/Harbor-v0", path=str(place), **options)
        assert isinstance(env, Harbor)
        opened.append(env)
        return env

    yield make
    for env in opened:
        env.close()
    docker_images.client().close()
    docker_images.client.cache_clear()


def containers() -> int:
    return len(docker_images.client().containers.list(all=True))


@pytest.mark.parametrize("name", ["plain", "names", "env", "steps-mean", "steps-files", "separate", "solution-files"])
def test_doing_nothing_gives_nothing_and_the_solution_all(name: str, made: Maker) -> None:
    env = made(folders.GOOD[name])
    totals = []
    for is_expert in (False, True):
        env.reset(seed=0)
        is_over, total = False, 0.0
        while not is_over:
            _, reward, is_over, _, _ = env.step(env.expert_action() if is_expert else SUBMIT)
            total += reward
        totals.append(total)
    assert totals == [0.0, 1.0]
    assert containers() == 0


@pytest.mark.parametrize(
    "runtime",
    ["", pytest.param(SHARED, marks=GVISOR)],
)
def test_a_task_of_the_terminal_is_judged_in_a_container(runtime: str, made: Maker, tmp_path: Path) -> None:
    """As in its environment, on an image of the tests with fewer programs than the one that the task names."""
    docker_images.client().images.get(IMAGE).tag("buildpack-deps", "bookworm")
    words = ["--option", "family=table", "--tasks", "1", "--out", str(tmp_path / "exported")]
    assert main(["export-tasks", "turngym/Terminal-v0", *words]) == 0
    (place,) = (tmp_path / "exported").iterdir()
    env = gymnasium.make("turngym/Harbor-v0", path=str(place), sandbox="docker", runtime=runtime)
    for wanted, extra in ((0.0, None), (1.0, ""), (0.0, bash("echo more > /app/more.txt"))):
        env.reset(seed=0)
        if extra is not None:
            env.step(env.get_wrapper_attr("expert_action")())
        if extra:
            env.step(extra)
        _, reward, terminated, _, info = env.step(SUBMIT)
        assert (reward, terminated, info["fault"]) == (wanted, True, ""), info
    env.close()
    assert containers() == 0


@GVISOR
def test_a_runtime_that_keeps_files_to_itself_is_refused(made: Maker) -> None:
    env = made(folders.task(), runtime="runsc")
    for _ in range(2):
        env.reset(seed=0)
        with pytest.raises(ConfigError, match="--overlay2=none"):
            env.step(bash("ls"))
    assert containers() == 0


def test_an_image_is_built_once_for_equal_files(made: Maker) -> None:
    for _ in range(2):
        env = made(folders.task())
        env.reset(seed=0)
        seen = env.step(bash("cat built.txt; echo $WORD; id -u; ls -A /sys/class/net"))[0]
        assert seen == "<output>\nhello\nhello\n0\nlo\n</output>"
    images = [tag for image in docker_images.client().images.list() for tag in image.tags if "turngym-harbor" in tag]
    assert len(images) == len(set(images))
    env.close()


def test_what_the_agent_wrote_before_the_verifier_counts_nothing(made: Maker) -> None:
    env = made(folders.task())
    one = f"{folders.LOGS}/reward.txt"
    for command in (
        f"echo 1 > {one}; mkdir {folders.LOGS}/reward.json",
        f"(while true; do echo 1 > {one}; done) > /dev/null 2>&1 &",
        f"rm -rf {folders.LOGS}; ln -s /app {folders.LOGS}; echo 1 > /app/reward.txt",
        f"echo 1 > {one}; rm /usr/bin/rm; printf '#!/bin/sh\\n' > /usr/bin/rm; chmod 755 /usr/bin/rm",
    ):
        env.reset(seed=0)
        env.step(bash(command))
        assert env.step(SUBMIT)[1:3] == (0.0, True), command


def test_times_processes_and_snapshots(made: Maker) -> None:
    env = made(folders.task(), seconds=20.0)  # more than a busy machine needs to start a process
    env.reset(seed=0)
    assert "out of time" in env.step(bash("echo a; sleep 60"))[0]
    assert env.step(bash("sleep 60 & echo b"))[0] == "<output>\nb\n</output>"
    assert env.step(bash("cat /proc/[0-9]*/comm | grep -c sleep"))[0] == "<output>\n1\n</output>"
    with pytest.raises(SnapshotUnsupported, match="boxes of Docker have no snapshots"):
        env.snapshot()


def test_output_of_a_commands_last_moment_is_read(made: Maker) -> None:
    env = made(folders.task())
    env.reset(seed=0)
    for number in range(30):  # about the time between two looks at whether the command still runs
        seen = env.step(bash(f"sleep 600 & sleep 0.0{number % 10}; echo {number}"))[0]
        assert seen == f"<output>\n{number}\n</output>"


def test_users_and_failures_have_their_say(made: Maker) -> None:
    env = made(folders.task('[agent]\nuser = "1234"\n'))
    env.reset(seed=0)
    assert env.step(bash("id -u"))[0] == "<output>\n1234\n</output>"
    env = made(folders.task(), f"FROM {IMAGE}\nRUN false\n")
    env.reset(seed=0)
    with pytest.raises(BoxError, match=r"cannot be built: .*false.* returned a non-zero code"):
        env.step(bash("ls"))
    env = made(folders.task('[environment]\ndocker_image = "no/such:image"\n') | {}, sandbox="docker")
    (Path(env.options.path) / "environment" / "Dockerfile").unlink()
    env.reset(seed=0)
    with pytest.raises(MissingExtra, match="docker pull no/such:image"):
        env.step(bash("ls"))
