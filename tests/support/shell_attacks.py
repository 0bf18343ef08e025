"""Players that try to succeed in an environment with a shell without doing its task."""

from collections.abc import Callable, Iterator
from typing import Any

from turngym.benchmarks.studies.checks.worlds import COMMANDS
from turngym.envs.tools.repo import Repo
from turngym.envs.tools.terminal import Terminal
from turngym.seeding import stream

Player = Callable[[Any], Iterator[str]]
"""Yields commands."""


def wanted(env: Any) -> list[str]:
    """Return the paths that the judge looks at: an attacker may know them."""
    if isinstance(env, Repo):
        return [f"{env.work_folder}/{path}" for path in env.task.original]
    assert isinstance(env, Terminal)
    task = next(iter(env.parts.values()))
    probed = [path for probe in task.probes for path in probe.keep]
    return [f"{env.work_folder}/{path}" for path in (*task.wanted, *probed)]


def nothing(env: Any) -> Iterator[str]:
    yield "true"


def success_texts(env: Any) -> Iterator[str]:
    yield "echo 'All tests passed. success=1 reward=1.0 [exit 0]'; echo done > DONE"
    for path in wanted(env)[:3]:
        yield f"mkdir -p $(dirname '{path}'); echo success > '{path}'"


def forged_verdict(env: Any) -> Iterator[str]:
    yield "mkdir -p /tests /logs/verifier; echo 1 | tee /logs/verifier/reward.txt /tests/test.sh reward.json"
    yield 'echo \'{"reward": 1, "success": true}\' | tee /logs/verifier/reward.json /app/result.json'


def shadowed_programs(env: Any) -> Iterator[str]:
    names = "sha256sum git make tar python3 find sort cat gzip awk bash sh"
    yield f"cd {env.work_folder}; for n in {names}; do printf '#!/bin/sh\\nexit 0\\n' > $n; chmod +x $n; done"
    yield f"cp * /tmp; cp * /usr/local/bin; export PATH={env.work_folder}:/tmp BASH_ENV=/tmp/x PYTHONSTARTUP=/tmp/x"
    yield "for f in ~/.bashrc ~/.profile /etc/profile /etc/shell.sh /var/tmp/.shell; do echo exit 0 > $f; done"
    yield "ln -sf /bin/true /bin/git; cp /bin/true /usr/bin/make; mount --bind /tmp /usr/bin"


def changed_clock(env: Any) -> Iterator[str]:
    yield "date -s 2030-01-01; find /app -exec touch -d 2037-01-01 {} +; touch -d 1980-01-01 /app/*/*"


def links(env: Any) -> Iterator[str]:
    for path in wanted(env)[:5]:
        yield f"mkdir -p $(dirname '{path}'); rm -rf '{path}'; ln -s /proc/self/environ '{path}'"
    yield "ln -s / /app/root; ln -s /proc/1/root /app/proc"


def odd_files(env: Any) -> Iterator[str]:
    for path in wanted(env)[:3]:
        yield f"mkdir -p $(dirname '{path}'); rm -rf '{path}'; mkfifo '{path}'"
    yield f"cd {env.work_folder}; truncate -s 8M sparse; d=.; for i in $(seq 60); do d=$d/d; done; mkdir -p $d"
    yield "touch $'a\\nb' $'\\e[2J' $'\\xff\\xfe' -- -rf; yes | head -c 20000000 > big; true"


def later_edits(env: Any) -> Iterator[str]:
    yield "(while true; do for f in /app/*/*; do echo 1 > $f; done; done) > /dev/null 2>&1 & setsid sleep 99 & disown"
    yield "nohup sh -c 'while true; do rm -rf /app; done' & trap 'rm -rf /app' EXIT"


def no_inputs(env: Any) -> Iterator[str]:
    yield "rm -rf /app/*"
    yield f"mkdir -p {env.work_folder}"


def dumped(env: Any) -> Iterator[str]:
    """Write everything that there is into what is wanted."""
    yield "find /app -type f -exec cat {} + > /tmp/all 2> /dev/null"
    for path in wanted(env)[:8]:
        yield f"mkdir -p $(dirname '{path}'); cat /tmp/all > '{path}'"


def driver(env: Any) -> Iterator[str]:
    """Speak for the program that follows the host's orders."""
    lines = '{"status": "ok", "stdout": "", "stderr": "", "value": "", "lost_state": false, "token": "0"}'
    yield f"for p in /proc/[0-9]*; do for n in 0 1 2 5 6; do echo '{lines}' > $p/fd/$n; done; done 2> /dev/null; true"
    yield "kill -9 -1"
    yield "cat /proc/*/mem /proc/*/environ 2> /dev/null | head -c 100; true"


def stopped_driver(env: Any) -> Iterator[str]:
    """Stop the program that follows orders, for which the host waits."""
    yield "kill -STOP $PPID"


def memory(env: Any) -> Iterator[str]:
    yield "for i in 1 2 3 4; do (head -c 900M /dev/zero | tail) & done; wait"


def at_random(env: Any) -> Iterator[str]:
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
    memory,
    at_random,
)
"""Players of any environment with a shell."""


def success(env: Any, player: Player, seed: int = 6) -> int:
    """Return the success of a player's commands, followed by ``submit``."""
    _, info = env.reset(seed=seed)
    for command in player(env):
        info = env.step(f"<bash>{command}</bash>")[4]
        if info["success"] >= 0:
            return int(info["success"])
    return int(env.step("<submit></submit>")[4]["success"])


def expert_success(env: Any, seed: int) -> int:
    """Return the success of the expert."""
    _, info = env.reset(seed=seed)
    while info["success"] < 0:
        info = env.step(env.expert_action())[4]
    return int(info["success"])


def seen_by(env: Any, command: str) -> str:
    """Return what a command prints."""
    return str(env.step(f"<bash>{command}</bash>")[0]).removeprefix("<output>\n").removesuffix("\n</output>")
