"""Two machines of a test: network namespaces that one wire joins, each with a launcher of its own. Needs no rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from rank_processes import Ended

_OWN_NETWORK = ["unshare", "--user", "--map-root-user", "--net"]
_SECOND = """
until ip address add 10.77.0.2/24 dev wire 2>&-; do sleep 0.1; done
ip link set lo up; ip link set wire up
PET_NODE_RANK=1 exec "$@"
"""
_FIRST = f"""
unshare --net sh -c '{_SECOND}' sh "$@" >&2 &
until ip link add wire type veth peer name wire netns $! 2>&-; do sleep 0.1; done
exec 3</proc/$!/ns/net  # keeps the wire after its end
ip address add 10.77.0.1/24 dev wire; ip link set lo up; ip link set wire up
PET_NODE_RANK=0 "$@" >&2 || exit
wait $! || exit
cat /proc/net/dev
"""
_LAUNCHER = "-m torch.distributed.run --nnodes 2 --master-addr 10.77.0.1 --master-port 29500"


def has_namespaces() -> bool:
    """Return whether this machine lets a test make networks of its own."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    made = [*_OWN_NETWORK, "ip", "link", "add", "one", "type", "veth", "peer", "name", "other"]
    return subprocess.run(made, capture_output=True, check=False).returncode == 0


def torchrun(words: Sequence[str], size: int = 2, timeout: float = 900.0) -> tuple[Ended, int]:
    """Run ``torchrun WORDS`` on both machines.

    Args:
        words: The program and its arguments.
        size: Ranks on each machine.
        timeout: Seconds to wait.

    Returns:
        The exit status and what all ranks wrote, and the bytes between the machines.
    """
    command = [sys.executable, *_LAUNCHER.split(), "--nproc-per-node", str(size), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "wire"}
    script = [*_OWN_NETWORK, "sh", "-c", _FIRST, "sh", *command]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    counted = [int(fields[1]) + int(fields[9]) for fields in lines if fields and fields[0] == "wire:"]
    return Ended(done.returncode, done.stdout, done.stderr), sum(counted)
