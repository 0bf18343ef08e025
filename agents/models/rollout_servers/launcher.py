"""vLLM servers that this process starts: on the loopback address, with a key and a log file, ended with it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from turngym.agents.models.rollout_servers import watcher
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.vllm.config import VllmConfig
from turngym.text import printable

LOOPBACK = "127.0.0.1"
ADAPTER = "policy"
"""Name of the low-rank adapter that servers sample with."""
_END_SECONDS = 20.0
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
_CPU_CACHE = 1.0
_OF_RANKS = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"}
"""Variables of torchrun, with which a server would join the learner's ranks."""


@dataclass(frozen=True)
class ServerCommand:
    """Start of a server.

    Args:
        source: A model folder or a hub name.
        vllm: vLLM's options; its format of weights must not be ``auto``.
        python: Python that has vLLM.
        on_cpu: Whether there is no GPU.
        lora_rank: Largest rank of adapters that it is given; 0 for none.
        transfer: Backend of vLLM's own protocol for weights; empty for none.
        devices: GPUs that it sees; empty for all.
        sleeps: Whether it can free the memory of its GPU for a while.
    """

    source: str
    vllm: VllmConfig
    python: str = sys.executable
    on_cpu: bool = False
    lora_rank: int = 0
    transfer: str = ""
    devices: tuple[int | str, ...] = ()
    sleeps: bool = False

    def words(self, port: int) -> list[str]:
        """Return the command for a port."""
        options = self.vllm
        cache = options.kv_cache_gib or (_CPU_CACHE if self.on_cpu else 0.0)
        eager = self.on_cpu if options.enforce_eager is None else options.enforce_eager
        pairs: dict[str, object] = {
            "--model": self.source,
            "--host": LOOPBACK,
            "--port": port,
            "--dtype": options.dtype,
            "--seed": 0,
            "--max-num-seqs": options.max_num_seqs,
            "--tensor-parallel-size": options.tensor_parallel_size,
            "--gpu-memory-utilization": options.gpu_memory_utilization,
            "--generation-config": "vllm",  # only our sampling settings
            "--logprobs-mode": "processed_logprobs",  # those of the distribution that is sampled from
        }
        if options.max_model_len:
            pairs["--max-model-len"] = options.max_model_len
        if cache:
            pairs["--kv-cache-memory-bytes"] = int(cache * 2**30)
        if self.lora_rank:
            pairs |= {"--max-lora-rank": _allowed_rank(self.lora_rank), "--max-loras": 1}
        if self.transfer:
            pairs["--weight-transfer-config"] = f'{{"backend": "{self.transfer}"}}'
        flags = ["--enable-prefix-caching", "--enable-scale-out"]
        flags += ["--enforce-eager"] * eager + ["--enable-lora"] * bool(self.lora_rank)
        flags += ["--enable-sleep-mode"] * self.sleeps
        words = [str(word) for pair in pairs.items() for word in pair]
        return [self.python, "-m", "vllm.entrypoints.openai.api_server", *words, *flags]

    def environment(self, key: str) -> Mapping[str, str]:
        """Return the variables of a server that takes a key."""
        own = {"VLLM_API_KEY": key, "VLLM_SERVER_DEV_MODE": "1"}
        if self.lora_rank:
            own["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "True"
        if self.transfer == "ipc":
            own["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # handles of the GPU's memory are pickled
        if self.devices:
            own["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, self.devices))
        inherited = {name: value for name, value in os.environ.items() if name not in _OF_RANKS}
        return {**_QUIET, **inherited, **own}


def _allowed_rank(rank: int) -> int:
    return next((allowed for allowed in (1, 8, 16, 32, 64, 128, 256, 320, 512) if allowed >= rank), rank)


@dataclass
class OwnServer:
    """A server that this process starts, and starts again after it ended.

    Args:
        command: vLLM settings.
        log: File that its output is appended to.
    """

    command: ServerCommand
    log: Path
    model: str = ""
    _key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> PolicyClient:
        """Start it on a free port and return its client; it answers when it has loaded the model."""
        self.stop()
        port = free_port()
        self._process = start_watched(self.command.words(port), self.command.environment(self._key), self.log)
        return PolicyClient(f"http://{LOOPBACK}:{port}", self._key, self.model)

    @property
    def has_ended(self) -> bool:
        """True if it runs no longer."""
        return self._process is None or self._process.poll() is not None

    def stop(self) -> None:
        """End it with all processes that it started; may be called twice."""
        if self._process is not None:
            stop_watched(self._process)
            self._process = None

    def last_words(self, lines: int = 3) -> str:
        """Return the end of its log."""
        try:
            found = self.log.read_text("utf8", "replace").strip().splitlines()
        except OSError:
            return ""
        return printable(" / ".join(line.strip()[:200] for line in found[-lines:]))


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def start_watched(command: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command that ends, with all its children, when this process does, however that happens.

    Args:
        command: The command.
        environment: Its variables.
        log: File that its output is appended to.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(watcher.__file__)), *command],
            stdin=subprocess.PIPE,  # closed by the kernel when this process dies
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,  # an interrupt from the terminal is for the run
        )


def stop_watched(process: subprocess.Popen[bytes]) -> None:
    """End a command of :func:`start_watched` and wait for it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
