"""Instances written as Harbor folders: doing nothing gives 0, the solution 1, and the judge is the environment's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import gymnasium
import pytest

from turngym.__main__ import main
from turngym.envs.tools.harbor import Harbor
from turngym.envs.tools.terminal.families import FAMILIES

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
SUBMIT = "<submit></submit>"
FORGE = """import os, sys, time
if os.fork() == 0:
    os.setsid()
    while True:
        for name, text in (("reward.txt", "1"), ("reward.json", "{\\"reward\\": 1}")):
            try:
                open("/logs/verifier/" + name, "w").write(text)
            except OSError:
                pass
        time.sleep(0.001)
"""

PARENT, ALL = "os.kill(os.getppid(), signal.SIGKILL)", "os.kill(-1, signal.SIGKILL)"
NO_FILES = """import resource
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        resource.prlimit(int(pid), resource.RLIMIT_NOFILE, (0, 0))
    except OSError:
        pass"""
KILL = """import os, signal
open("/logs/verifier/reward.txt", "w").write("1")
"""


def exported(env_id: str, out: Path, *words: str) -> list[Harbor]:
    """Write tasks, and return the environments that play them."""
    assert main(["export-tasks", env_id, "--out", str(out), *words]) == 0
    found = []
    for folder in sorted(out.iterdir()):
        env = gymnasium.make("turngym/Harbor-v0", path=str(folder))
        assert isinstance(env, Harbor)
        found.append(env)
    return found


def reward(env: Harbor, *actions: str) -> float:
    """Play actions and submit; return the reward."""
    env.reset(seed=0)
    for action in actions:
        env.step(action)
    _, value, terminated, _, info = env.step(SUBMIT)
    assert terminated and not info["fault"]
    return float(value)


def expert(env: Harbor) -> str:
    env.reset(seed=0)
    return env.expert_action()


@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=() if name in ("build", "modes") else pytest.mark.integration) for name in FAMILIES],
)
def test_a_task_of_the_terminal_is_judged_as_in_its_environment(family: str, tmp_path: Path) -> None:
    (env,) = exported("turngym/Terminal-v0", tmp_path / "tasks", "--option", f"family={family}", "--tasks", "1")
    assert reward(env) == 0.0
    solution = expert(env)
    assert reward(env, solution) == 1.0
    assert reward(env, solution, "<bash>echo more > /app/more.txt</bash>") == 0.0
    env.close()


def test_a_program_is_judged_as_in_its_environment_and_cannot_forge_its_reward(tmp_path: Path) -> None:
    for env in exported("turngym/CodeRepair-v0", tmp_path / "tasks", "--tasks", "2"):
        assert reward(env) == 0.0
        assert reward(env, expert(env)) == 1.0
        assert reward(env, f"<bash>cat >> /app/program.py << 'END'\n{FORGE}END</bash>") == 0.0
        env.close()


def test_who_ends_or_replaces_the_judge_of_a_program_gets_nothing(tmp_path: Path) -> None:
    (env,) = exported("turngym/CodeRepair-v0", tmp_path / "tasks", "--tasks", "1")
    for attack in (PARENT, ALL, NO_FILES):
        assert reward(env, f"<bash>cat > /app/program.py << 'END'\n{KILL}{attack}\nEND\n</bash>") == 0.0, attack
    fake = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n"
    place = "/usr/local/bin/python3"
    assert reward(env, f"<bash>mkdir -p /usr/local/bin; printf '{fake}' > {place}; chmod +x {place}</bash>") == 0.0
    env.close()


@pytest.mark.integration
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_under_root_a_program_can_neither_end_its_judge_nor_write_a_reward(tmp_path: Path) -> None:
    exported("turngym/CodeRepair-v0", tmp_path / "tasks", "--tasks", "1")[0].close()
    (folder,) = (tmp_path / "tasks").iterdir()
    content, program, logs = folder / "tests/cases.json", tmp_path / "program.py", tmp_path / "logs"
    content.write_text(json.dumps({**json.loads(content.read_text()), "file": str(program)}))
    solution = (folder / "solution/solve.sh").read_text().split("\n", 1)[1].rpartition("END_OF_PROGRAM")[0]
    judge = (folder / "tests/exported.py").read_text().replace('"/logs/verifier"', repr(str(logs)))
    forge = f"open({str(logs / 'reward.json')!r}, 'w')"
    attack = f"import os\ntry:\n    os.kill(os.getppid(), 9)\nexcept OSError:\n    {forge}\n"
    for source, wanted in ((solution, "1\n"), (attack + solution, "0\n")):
        shutil.copytree(folder / "tests", tmp_path / "tests")
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        logs.chmod(0o777)
        program.write_text(source)
        text = judge.replace('"/tests"', repr(str(tmp_path / "tests")))
        subprocess.run(["/usr/bin/python3", "-I", "-c", text], check=True)
        assert [each.read_text() for each in logs.iterdir()] == [wanted]
        assert logs.stat().st_mode & 0o777 == 0o777


def test_who_ends_the_judge_of_the_terminal_gets_nothing(tmp_path: Path) -> None:
    (env,) = exported("turngym/Terminal-v0", tmp_path / "tasks", "--option", "family=build", "--tasks", "1")
    tasks = json.loads((tmp_path / "tasks/terminal-0/steps/work/tests/tasks.json").read_text())["tasks"]
    rules = "all:\\n\\tpython3 /tmp/forge.py\\n%%:\\n\\tpython3 /tmp/forge.py\\n"
    every = "for pid in sorted(map(int, filter(str.isdecimal, os.listdir('/proc')))):\n    " + (
        "pid in (1, os.getpid()) or os.kill(pid, signal.SIGKILL)"
    )
    for attack in (every, NO_FILES):
        forge = (
            f"cat > /tmp/forge.py << 'END'\n{KILL}{attack}\nEND\nprintf '{rules}' > /app/{next(iter(tasks))}/Makefile"
        )
        assert reward(env, f"<bash>{forge}</bash>") == 0.0, attack
    env.close()


def test_a_probe_finds_no_answers_and_cannot_forge_the_reward(tmp_path: Path) -> None:
    (env,) = exported("turngym/Terminal-v0", tmp_path / "tasks", "--option", "family=build", "--tasks", "1")
    tasks = json.loads((tmp_path / "tasks/terminal-0/steps/work/tests/tasks.json").read_text())["tasks"]
    recipe = "\\tls /tests > /tmp/seen; python3 /tmp/forge.py\\n"
    rules = f"all:\\n{recipe}%:\\n{recipe}"
    forge = f"cat > /tmp/forge.py << 'END'\n{FORGE}END\nprintf '{rules}' > /app/{next(iter(tasks))}/Makefile"
    assert reward(env, f"<bash>{forge}</bash>") == 0.0
    env.close()


def test_what_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export-tasks", "turngym/NumberLine-v0", "--out", str(tmp_path / "a")]) == 2
    assert "cannot be written as Harbor tasks" in " ".join(capsys.readouterr().err.split())
    assert main(["export-tasks", "turngym/CodeRepair-v0", "--out", str(tmp_path / "a"), "--seed", "-5"]) == 2
    assert "--seed must be 0 or more, got -5." in " ".join(capsys.readouterr().err.split())
    words = ["export-tasks", "turngym/CodeRepair-v0", "--tasks", "1", "--out", str(tmp_path / "b")]
    assert main(words) == 0 and main(words) == 2
    assert "coderepair-0 exists already" in "".join(capsys.readouterr().err.split("\n"))
