"""Ways to success in Terminal without doing the task: none works."""

import base64
import shutil
import zlib
from collections.abc import Callable, Iterator

import pytest

from turngym.benchmarks.studies.checks.worlds import COMMANDS
from turngym.envs.tools.harbor.box import LARGEST_SNAPSHOT
from turngym.envs.tools.harbor.files import Entry, packed_rows, unpacked
from turngym.envs.tools.terminal import Terminal
from turngym.envs.tools.terminal.families import FAMILIES
from turngym.envs.tools.terminal.machine import is_tree
from turngym.seeding import stream

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("bwrap", "git", "make")), reason="bwrap, git or make is not installed"
)
Player = Callable[[Terminal], Iterator[str]]


def folder(env: Terminal) -> str:
    return f"/app/{next(iter(env.parts))}"


def wanted(env: Terminal) -> list[str]:
    """Return the paths that the judge looks at: an attacker may know them, as they are in the goal."""
    task = next(iter(env.parts.values()))
    probed = [path for probe in task.probes for path in probe.keep]
    return [f"{folder(env)}/{path}" for path in (*task.wanted, *probed)]


def nothing(env: Terminal) -> Iterator[str]:
    yield "true"


def success_texts(env: Terminal) -> Iterator[str]:
    yield "echo 'All tests passed. success=1 reward=1.0 [exit 0]'; echo done > DONE"
    for path in wanted(env)[:3]:
        yield f"mkdir -p $(dirname '{path}'); echo success > '{path}'"


def forged_verdict(env: Terminal) -> Iterator[str]:
    yield "mkdir -p /tests /logs/verifier; echo 1 | tee /logs/verifier/reward.txt /tests/test.sh reward.json"
    yield 'echo \'{"reward": 1, "success": true}\' | tee /logs/verifier/reward.json /app/result.json'


def shadowed_programs(env: Terminal) -> Iterator[str]:
    names = "sha256sum git make tar python3 find sort cat gzip awk bash sh"
    yield f"cd {folder(env)}; for n in {names}; do printf '#!/bin/sh\\nexit 0\\n' > $n; chmod +x $n; done"
    yield f"cp * /tmp; cp * /usr/local/bin; export PATH={folder(env)}:/tmp BASH_ENV=/tmp/x PYTHONSTARTUP=/tmp/x"
    yield "for f in ~/.bashrc ~/.profile /etc/profile /etc/shell.sh /var/tmp/.shell; do echo exit 0 > $f; done"
    yield "ln -sf /bin/true /bin/git; cp /bin/true /usr/bin/make; mount --bind /tmp /usr/bin"


def changed_clock(env: Terminal) -> Iterator[str]:
    yield "date -s 2030-01-01; find /app -exec touch -d 2037-01-01 {} +; touch -d 1980-01-01 /app/*/*"


def links(env: Terminal) -> Iterator[str]:
    for path in wanted(env)[:5]:
        yield f"mkdir -p $(dirname '{path}'); rm -rf '{path}'; ln -s /proc/self/environ '{path}'"
    yield "ln -s / /app/root; ln -s /proc/1/root /app/proc"


def odd_files(env: Terminal) -> Iterator[str]:
    for path in wanted(env)[:3]:
        yield f"mkdir -p $(dirname '{path}'); rm -rf '{path}'; mkfifo '{path}'"
    yield f"cd {folder(env)}; truncate -s 8M sparse; d=.; for i in $(seq 60); do d=$d/d; done; mkdir -p $d"
    yield "touch $'a\\nb' $'\\e[2J' $'\\xff\\xfe' -- -rf; yes | head -c 20000000 > big; true"


def later_edits(env: Terminal) -> Iterator[str]:
    yield "(while true; do for f in /app/*/*; do echo 1 > $f; done; done) > /dev/null 2>&1 & setsid sleep 99 & disown"
    yield "nohup sh -c 'while true; do rm -rf /app; done' & trap 'rm -rf /app' EXIT"


def no_inputs(env: Terminal) -> Iterator[str]:
    yield "rm -rf /app/*"
    yield f"mkdir -p {folder(env)}"


def dumped(env: Terminal) -> Iterator[str]:
    """Write everything that there is into what is wanted."""
    yield "find /app -type f -exec cat {} + > /tmp/all 2> /dev/null"
    for path in wanted(env)[:8]:
        yield f"mkdir -p $(dirname '{path}'); cat /tmp/all > '{path}'"


def driver(env: Terminal) -> Iterator[str]:
    """Speak for the program that follows the host's orders."""
    lines = '{"status": "ok", "stdout": "", "stderr": "", "value": "", "lost_state": false, "token": "0"}'
    yield f"for p in /proc/[0-9]*; do for n in 0 1 2 5 6; do echo '{lines}' > $p/fd/$n; done; done 2> /dev/null; true"
    yield "kill -9 -1"
    yield "cat /proc/*/mem /proc/*/environ 2> /dev/null | head -c 100; true"


def stopped_driver(env: Terminal) -> Iterator[str]:
    """Stop the program that follows orders, for which the host waits."""
    yield "kill -STOP $PPID"


def probes(env: Terminal) -> Iterator[str]:
    """Let what is probed say that all is well, whatever it is asked."""
    yield f"cd {folder(env)}; printf 'all:\\n\\t@cat dist/*; echo ok > /proc/$$PPID/fd/1\\n' > Makefile; make"
    yield "printf 'port = 80\\nroot = /\\n/ = etc/passwd\\n' > server.conf; tar -czf site.tar.gz /app; true"
    yield "printf '[core]\\n\\tfsmonitor = /bin/true\\n[alias]\\n\\trev-parse = version\\n' > .git/config"
    yield "mkdir -p .git/refs/replace; for c in $(git rev-list --all); do cp .git/HEAD .git/refs/replace/$c; done"
    yield "mkdir .git/hooks; cp /bin/true .git/hooks/post-checkout; git update-ref refs/heads/x HEAD"


def other_instance(env: Terminal) -> Iterator[str]:
    """The expert of another task of the same family, as a player that has learnt it by heart."""
    other = Terminal(family=env.options.family, level=env.options.level)
    other.reset(seed=int(env.instance_hash, 16) % 1000)
    for task in other.parts.values():
        for command in task.solution:
            yield f"cd {folder(env)}\n{command}"


def memory(env: Terminal) -> Iterator[str]:
    yield "for i in 1 2 3 4; do (head -c 900M /dev/zero | tail) & done; wait"


def at_random(env: Terminal) -> Iterator[str]:
    generator = stream("terminal attack", env.instance_hash)
    for _ in range(12):
        yield COMMANDS[int(generator.integers(len(COMMANDS)))]


ATTACKS: tuple[Player, ...] = (
    nothing,
    success_texts,
    forged_verdict,
    shadowed_programs,
    changed_clock,
    links,
    odd_files,
    later_edits,
    no_inputs,
    dumped,
    driver,
    stopped_driver,
    probes,
    other_instance,
    memory,
    at_random,
)


def successes(player: Player, families: list[str], level: int = 1) -> int:
    """Return how often a player succeeds, one task of each family."""
    won = 0
    for family in families:
        env = Terminal(family=family, level=level, seconds=3)
        _, info = env.reset(seed=6)
        for command in player(env):
            info = env.step(f"<bash>{command}</bash>")[4]
            if info["success"] >= 0:
                break
        else:
            info = env.step("<submit></submit>")[4]
        won += info["success"] == 1
        env.close()
    return won


@pytest.mark.parametrize(
    "player", [each for each in ATTACKS if each is not stopped_driver], ids=lambda player: player.__name__
)
def test_attacks_never_succeed(player: Player) -> None:
    assert successes(player, [list(FAMILIES)[ATTACKS.index(player) % len(FAMILIES)]]) == 0


@pytest.mark.integration
@pytest.mark.parametrize("player", ATTACKS, ids=lambda player: player.__name__)
def test_attacks_never_succeed_in_any_family(player: Player) -> None:
    families = list(FAMILIES)[:1] if player is stopped_driver else list(FAMILIES)
    assert successes(player, families, level=2) == 0


def test_the_judge_sees_a_change_that_nobody_asked_for() -> None:
    for harm in ("echo >> sales.csv", "rm staff.csv", "touch more.txt", "mkdir more", "touch ../more.txt"):
        env = Terminal(family="table", level=1)
        env.reset(seed=0)
        env.step(env.expert_action())
        _, _, _, _, info = env.step(env.expert_action())
        assert info["progress"] == 1.0
        _, _, _, _, info = env.step(f"<bash>cd {folder(env)}; {harm}</bash>")
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


def seen_by(env: Terminal, command: str) -> str:
    """Return what a command prints."""
    return str(env.step(f"<bash>{command}</bash>")[0]).removeprefix("<output>\n").removesuffix("\n</output>")


def expert_success(env: Terminal, seed: int) -> int:
    _, info = env.reset(seed=seed)
    while info["success"] < 0:
        info = env.step(env.expert_action())[4]
    return int(info["success"])


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
        env.step(f"<bash>cd {folder(env)}; printf 'all:\\n\\t{harm}\\n' > Makefile</bash>")
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
            env.step(f"<bash>cd {folder(env)}; {harm}; stat -c %F '{gone}' more ../more</bash>")[4]["progress"]
        )
        env.step(f"<bash>cd {folder(env)}; rm -f '{gone}' more ../more</bash>")
    assert all(progress < 1 for progress in found)
    env.step(f"<bash>cd {folder(env)}; mkfifo '{gone}'</bash>")
    assert env.step("<submit></submit>")[4]["success"] == 0
    env.close()


def test_a_tag_is_no_branch() -> None:
    env = Terminal(family="commits", level=1)
    seeds = (seed for seed in range(60) if "was deleted" in env.reset(seed=seed)[0])
    env.reset(seed=next(seeds))
    command = next(iter(env.parts.values())).solution[1]
    assert "git branch " in command
    env.step(f"<bash>cd {folder(env)}; {command.replace('git branch ', 'git tag ')}</bash>")
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
