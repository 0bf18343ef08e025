"""Ways to success in Terminal without doing the task: none works."""

import base64
import shutil
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import shell_attacks
from shell_attacks import Player, expert_success, seen_by, stopped_driver, success

from turngym.envs.tools.harbor.box import LARGEST_SNAPSHOT
from turngym.envs.tools.harbor.files import Entry, packed_rows, unpacked
from turngym.envs.tools.terminal import Terminal
from turngym.envs.tools.terminal.families import FAMILIES
from turngym.envs.tools.terminal.machine import is_tree

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "git", "make")), reason="bwrap, git or make is not installed"
)


def probes(env: Any) -> Iterator[str]:
    """Let what is probed say that all is well, whatever it is asked."""
    yield f"cd {env.work_folder}; printf 'all:\\n\\t@cat dist/*; echo ok > /proc/$$PPID/fd/1\\n' > Makefile; make"
    yield "printf 'port = 80\\nroot = /\\n/ = etc/passwd\\n' > server.conf; tar -czf site.tar.gz /app; true"
    yield "printf '[core]\\n\\tfsmonitor = /bin/true\\n[alias]\\n\\trev-parse = version\\n' > .git/config"
    yield "mkdir -p .git/refs/replace; for c in $(git rev-list --all); do cp .git/HEAD .git/refs/replace/$c; done"
    yield "mkdir .git/hooks; cp /bin/true .git/hooks/post-checkout; git update-ref refs/heads/x HEAD"


def other_instance(env: Any) -> Iterator[str]:
    """The expert of another task of the same family, as a player that has learnt it by heart."""
    other = Terminal(family=env.options.family, level=env.options.level)
    other.reset(seed=int(env.instance_hash, 16) % 1000)
    for task in other.parts.values():
        for command in task.solution:
            yield f"cd {env.work_folder}\n{command}"


ATTACKS: tuple[Player, ...] = (*shell_attacks.ATTACKS, probes, other_instance)


def successes(player: Player, families: list[str], level: int = 1) -> int:
    """Return how often a player succeeds, one task of each family."""
    won = 0
    for family in families:
        with closing(Terminal(family=family, level=level, seconds=3)) as env:
            won += success(env, player)
    return won


@pytest.mark.parametrize(
    "player", [each for each in ATTACKS if each is not stopped_driver], ids=lambda player: player.__name__
)
def test_attacks_never_succeed(player: Player) -> None:
    assert successes(player, [list(FAMILIES)[ATTACKS.index(player) % len(FAMILIES)]]) == 0


@pytest.mark.integration
@pytest.mark.parametrize("player", ATTACKS, ids=lambda player: player.__name__)
def test_attacks_never_succeed_in_larger_tasks(player: Player) -> None:
    """Every family meets a third of the attacks, each in other families than above."""
    families = list(FAMILIES)[(ATTACKS.index(player) + 1) % 3 :: 3]
    assert successes(player, families[:1] if player is stopped_driver else families, level=2) == 0


def test_the_judge_sees_a_change_that_nobody_asked_for() -> None:
    for harm in ("echo >> sales.csv", "rm staff.csv", "touch more.txt", "mkdir more", "touch ../more.txt"):
        env = Terminal(family="table", level=1)
        env.reset(seed=0)
        env.step(env.expert_action())
        _, _, _, _, info = env.step(env.expert_action())
        assert info["progress"] == 1.0
        _, _, _, _, info = env.step(f"<bash>cd {env.work_folder}; {harm}</bash>")
        assert info["progress"] == 0.5
        assert env.step("<submit></submit>")[4]["success"] == 0
        env.close()


def test_nothing_that_an_agent_can_read_holds_the_solution() -> None:
    """Everything in the machine besides the task's own files, searched for what is wanted."""
    for family in ("table", "logs", "timetable", "jobs"):
        env = Terminal(family=family, level=1)
        env.reset(seed=1)
        task = next(iter(env.parts.values()))
        answers = [each.data.decode().strip() for each in task.wanted.values() if each.data and len(each.data) > 12]
        seen = env.step("<bash>cat /etc/* /var/tmp/.shell; env; find / -xdev -type f | grep -v ^/app</bash>")[0]
        texts = [seen, env.instructions, *(entry.data.decode("utf8", "replace") for entry in task.files.values())]
        assert answers and not any(answer in text for answer in answers for text in texts)
        env.close()


def test_shared_memory_neither_stops_the_next_command_nor_reaches_it() -> None:
    env = Terminal(family="table", level=1)
    env.reset(seed=0)
    deep = "import os\nos.chdir('/dev/shm')\nfor _ in range(600):\n os.mkdir('d' * 9)\n os.chdir('d' * 9)"
    assert seen_by(env, f'python3 -c "{deep}"; chmod 000 /dev/shm/*; echo hello') == "hello"
    assert seen_by(env, "chmod 000 /dev/shm; echo again") == "again"
    assert seen_by(env, "echo secret > /dev/shm/keep; kill -9 -1").endswith("137")
    assert seen_by(env, "stat -c %a /dev/shm; ls /dev/shm") == "755"
    assert seen_by(env, "echo secret > /dev/shm/keep; kill -9 -1").endswith("137")
    env.reset(seed=1)
    assert seen_by(env, "stat -c %a /dev/shm; ls /dev/shm") == "755"
    env.close()


def test_folders_that_stay_carry_nothing_into_the_next_episode() -> None:
    env = Terminal(family="table", level=1)
    env.reset(seed=0)
    places = "for p in ('/', '/etc', '/usr', '/dev/shm')"
    note = f"import contextlib, os\n{places}:\n with contextlib.suppress(OSError): os.setxattr(p, 'user.x', b'secret')"
    assert seen_by(env, f'python3 -c "{note}"; chmod 711 / /etc /usr /dev/shm; kill -9 -1').endswith("137")
    env.reset(seed=1)
    look = f"import os; print([(p, os.listxattr(p), oct(os.stat(p).st_mode)) {places}])"
    seen = seen_by(env, f'python3 -c "{look}"')
    assert "user." not in seen and seen.count("0o40755") == 4
    env.close()


def test_a_probe_cannot_spoil_the_next_one() -> None:
    env = Terminal(family="build", level=1)
    for harm in ("chmod 000 /dev/shm", "kill -9 -1"):
        env.reset(seed=0)
        env.step(f"<bash>cd {env.work_folder}; printf 'all:\\n\\t{harm}\\n' > Makefile</bash>")
        env.step("<submit></submit>")
        assert expert_success(env, 1) == 1
    env.close()


def test_no_command_looks_into_the_program_that_follows_orders() -> None:
    env = Terminal(family="table", level=1)
    env.reset(seed=0)
    harm = "for n in mem environ fd/1 fd/3; do (echo > /proc/$PPID/$n || cat /proc/$PPID/$n) 2> /dev/null; done"
    assert seen_by(env, f"{harm}; kill -9 -1").endswith("137")
    assert seen_by(env, f"{harm}; cat /proc/$$/maps | head -c 1 | wc -c; echo done") == "1\ndone"
    env.close()


def test_pipes_and_sockets_are_files_to_the_judge() -> None:
    env = Terminal(family="duplicates", level=1)
    env.reset(seed=0)
    task = next(iter(env.parts.values()))
    env.step(env.expert_action())
    assert env.step(env.expert_action())[4]["progress"] == 1.0
    gone = next(path for path, wanted in task.wanted.items() if wanted.data is None)
    bind = "import socket; socket.socket(socket.AF_UNIX).bind"
    found = []
    for harm in (f"mkfifo '{gone}'", "mkfifo more", f"python3 -c \"{bind}('more')\"", "mkfifo ../more"):
        found.append(
            env.step(f"<bash>cd {env.work_folder}; {harm}; stat -c %F '{gone}' more ../more</bash>")[4]["progress"]
        )
        env.step(f"<bash>cd {env.work_folder}; rm -f '{gone}' more ../more</bash>")
    assert all(progress < 1 for progress in found)
    env.step(f"<bash>cd {env.work_folder}; mkfifo '{gone}'</bash>")
    assert env.step("<submit></submit>")[4]["success"] == 0
    env.close()


def test_a_tag_is_no_branch() -> None:
    env = Terminal(family="commits", level=1)
    seeds = (seed for seed in range(60) if "was deleted" in env.reset(seed=seed)[0])
    env.reset(seed=next(seeds))
    command = next(iter(env.parts.values())).solution[1]
    assert "git branch " in command
    env.step(f"<bash>cd {env.work_folder}; {command.replace('git branch ', 'git tag ')}</bash>")
    assert env.step("<submit></submit>")[4]["success"] == 0
    env.close()


def test_old_times_and_pipes_are_restored() -> None:
    env, other = Terminal(family="table", level=1), Terminal(family="table", level=1)
    for each in (env, other):
        each.reset(seed=0)
    env.step("<bash>touch -d 1960-01-01 /tmp/a; touch -d @0 /tmp/b; mkfifo -m 600 /tmp/c</bash>")
    other.restore(env.snapshot())
    look = "stat -c '%n %F %a %Y' /tmp/a /tmp/b /tmp/c"
    seen = seen_by(env, look)
    assert seen == seen_by(other, look)
    assert seen.split("\n")[:2] == ["/tmp/a regular empty file 644 0", "/tmp/b regular empty file 644 0"]
    assert seen.split("\n")[2].startswith("/tmp/c fifo 600 ")
    env.close()
    other.close()


@pytest.mark.parametrize("row", ['["","file",0,1,""]', "[]", "{}", "0", '["", "file", 420, 1, ""]'])
def test_a_forged_tree_of_many_entries_is_refused_before_it_is_read(row: str) -> None:
    text = base64.b64encode(zlib.compress(f"[{f'{row},' * 900_000}{row}]".encode(), 1)).decode()
    with pytest.raises(ValueError, match="a tree of more than 16,777,216 bytes"):
        unpacked(text, LARGEST_SNAPSHOT)
    assert not is_tree(text)


def test_a_tree_counts_entries_as_a_box_does() -> None:
    rows = [(f"a{place}", Entry("file", 0o644, b"x" * 100), 1) for place in range(10)]
    assert len(unpacked(packed_rows(rows), 3000)) == 10
    with pytest.raises(ValueError, match="more bytes than it may have"):
        unpacked(packed_rows(rows), 2999)
