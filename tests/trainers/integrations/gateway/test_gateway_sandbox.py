"""Agent programs in sandboxes: they play as outside of them, and reach nothing but the gateway."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_clients import LIMITS
from small import small_model

import turngym
from turngym.agents.agent_program import QUESTIONS, ProgramConfig
from turngym.agents.episodes.rollout import rollout
from turngym.agents.gateway.policy import gateway_for
from turngym.agents.gateway.programs import ProgramAgent, playing
from turngym.agents.gateway.programs.sandbox import mounts
from turngym.agents.trajectory import EpisodeSpec
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, MissingExtra

SUPPORT = Path(__file__).parents[3] / "support"
PYTHON = "/usr/bin/python3"
needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="Bubblewrap is not installed")
integration = pytest.mark.integration


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    path = tmp_path / "tasks.jsonl"
    lines = [{"id": f"t{k}", "prompt": "secret task", "answer": "hidden", "files": {"in/a.txt": "7"}} for k in range(3)]
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


@contextmanager
def sandboxed(words: str, tasks: str = "", program: str = PYTHON, **settings: Any) -> Iterator[ProgramAgent]:
    command = f"{program} {SUPPORT}/{words}"
    config = ProgramConfig(command=command, seconds=120, tasks=tasks, answer="stdout", sandbox="bubblewrap", **settings)
    with playing(gateway_for(small_model(), limits=LIMITS), config) as agent:
        yield agent


def printed(words: str, tasks: str, count: int = 1, **settings: Any) -> list[str]:
    """Return what a program prints, once for each episode; it may print an error as well."""
    vector = make_vec(QUESTIONS, count, autoreset_mode="disabled", data=tasks, reward="none", form="plain")
    try:
        with sandboxed(words, tasks, **settings) as agent:
            played = rollout(vector, agent, [EpisodeSpec(k, k, 0) for k in range(count)], final_prompts=False)
            return [each.turns[0].action if each.turns else each.fault for each in played]
    finally:
        vector.close()


def found(words: str, tasks: str, **settings: Any) -> Any:
    (text,) = printed(words, tasks, **settings)
    return json.loads(text)


@integration
@needs_sandbox
@pytest.mark.parametrize("program", [PYTHON, sys.executable])
def test_a_sandboxed_program_plays_as_outside(program: str) -> None:
    vector = make_vec("turngym/NumberLine-v0", 2, autoreset_mode="disabled", max_turns=3, highest=3)
    try:
        with sandboxed("program_agent.py", program=program) as agent:
            played = rollout(vector, agent, [EpisodeSpec(k, 5, 0) for k in range(2)], final_prompts=False)
            agent.settle()
            assert [len(each.turns) for each in played] == [3, 3] and not any(each.fault for each in played)
            assert [len(play.episode.calls) for play in agent.played.values()] == [3, 3]
            assert all(play.program.status == 0 for play in agent.played.values())
    finally:
        vector.close()


@integration
@needs_sandbox
def test_it_sees_its_own_files_processes_and_variables_alone(tasks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_OPERATOR", "x")
    seen = found("caught_agent.py seen", tasks)
    folders = {"bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "tmp", "usr", SUPPORT.parts[1]}
    assert set(seen["root"]) <= folders
    assert seen["processes"][0] == 1 and len(seen["processes"]) == 2 and seen["first"] == []
    assert seen["files"] == ["0", "1", "2", "3"] and seen["work"] == ["in"] and seen["home"] == []
    assert not any("SECRET" in name for name in seen["variables"])


@integration
@needs_sandbox
def test_it_reads_no_file_of_the_host_also_if_its_task_names_it(tmp_path: Path) -> None:
    place = Path(turngym.__file__).resolve().parent
    own, given, shown = str(SUPPORT / "caught_agent.py"), "/tmp/work/in/a.txt", tmp_path / "shown"
    shown.mkdir()
    hidden = ["/etc/shadow", "/root", "/home", "/var", "/sys", str(tmp_path / "tasks.jsonl"), str(place)]
    prompt = " ".join([*hidden, str(SUPPORT / "small.py"), own, given, str(shown)])
    line = {"prompt": prompt, "files": {"in/a.txt": "7"}}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(line))
    tasks = str(tmp_path / "tasks.jsonl")
    assert found("caught_agent.py read {task}", tasks) == [own, given]
    assert found("caught_agent.py read {task}", tasks, mounts=(str(shown),)) == [own, given, str(shown)]
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"prompt": str(tmp_path / "tasks.jsonl")}))
    assert found("caught_agent.py read {task}", tasks) == []


@integration
@needs_sandbox
def test_it_speaks_in_its_own_episode_alone(tasks: str) -> None:
    with playing(gateway_for(small_model(), limits=LIMITS), ProgramConfig(command="true")) as other:
        (own,) = printed("caught_agent.py episode default " + other.gateway.open("another").id, tasks)
    mine, others, opened = json.loads(own)
    assert mine == "200" and set(others) == {"401"} and opened == "401"


@integration
@needs_sandbox
def test_it_reaches_no_other_socket(tasks: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "local"))
        local.listen()
        port = listener.getsockname()[1]
        names = [f"127.0.0.1:{port}", f"localhost:{port}", "192.0.2.1:80", str(tmp_path / "local"), "/run/gateway.sock"]
        assert found(f"caught_agent.py sockets {' '.join(names)}", tasks) == ["/run/gateway.sock"]


@integration
@needs_sandbox
def test_processes_memory_files_and_output_are_limited(tasks: str) -> None:
    assert 1 <= found("caught_agent.py fork", tasks, processes=20) <= 28
    assert found("caught_agent.py memory", tasks, memory_mib=512) <= 512
    sizes = found("caught_agent.py fill /tmp/work /tmp /dev/shm /run /etc /usr", tasks, disk_mib=32)
    assert 0 < sizes[0] + sizes[1] <= 2**25 and sizes[2] <= 2**26 and sizes[3:] == [0, 0, 0]
    with pytest.raises(ConfigError, match="File too large"):
        printed("caught_agent.py print", tasks, disk_mib=1)


@integration
@needs_sandbox
def test_nothing_survives_the_end(tasks: str) -> None:
    mark = uuid.uuid4().hex
    assert found(f"caught_agent.py survive {mark}", tasks) == "left"
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    assert not any(mark.encode() in line and b"setsid" in line for line in lines)


@integration
@needs_sandbox
def test_it_can_make_no_namespaces_and_mounts_and_not_end_its_first_process(tasks: str) -> None:
    made = found("caught_agent.py kernel", tasks)
    assert made[:2] == [True, True] and made[3]


def test_mounts_are_checked_and_never_hold_everything(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("")
    paths = mounts.mounted([sys.executable, str(tmp_path / "agent.py"), "{task}", "/etc/nothing"], [])
    assert tmp_path / "agent.py" in paths and not any(Path("/etc").is_relative_to(path) for path in paths)
    for wrong, told in (("/", "more than"), (str(Path.home()), "more than"), ("/tmp", "more than"), ("/zzz", "exist")):
        with pytest.raises(ConfigError, match=told):
            mounts.mounted([sys.executable], [wrong])
    place = Path(turngym.__file__).resolve().parent
    assert place in mounts.hidden([place.parent]) and not mounts.hidden([tmp_path])
    with pytest.raises(ConfigError, match=r"pass --agent.sandbox"):
        ProgramConfig(command="agent", mounts=("/opt",))


def test_a_missing_sandbox_is_refused_and_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with (
        pytest.raises(MissingExtra, match="needs the program bwrap"),
        playing(gateway_for(small_model(), limits=LIMITS), ProgramConfig(command=sys.executable, sandbox="bubblewrap")),
    ):
        pass
