"""Why a run stopped: the error, its first location, the last checkpoint, and advice."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from turngym.errors import DivergenceError, TurngymError

INTERRUPT, DISK, MEMORY, FILES, ERROR, BUG = "interrupt", "disk", "memory", "files", "error", "bug"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SMALLER_STEPS = "a smaller --update.learning-rate, or --update.max-grad-norm, in a new run"
ADVICE: Mapping[str, tuple[str, ...]] = {
    "reward": (
        "play the environment with that seed and those actions (`turngym play`, `turngym check`) and fix its reward",
        "--guards.bad-reward drop leaves such episodes out and counts them",
    ),
    "advantage": (
        "look at the rewards of that group and, with a critic, at loss/value_loss and credit/explained_variance",
        "a smaller --update.critic-learning-rate in a new run",
    ),
    "loss": (_SMALLER_STEPS, "look at policy/ratio_max and policy/kl_sampler: fewer --update.epochs keep them small"),
    "gradient": (_SMALLER_STEPS, "train in float32: 16-bit weights overflow"),
    "weights": (_SMALLER_STEPS, "a few --update.warmup-updates"),
    "faults": (
        "`turngym check` on the environment; the samples and the log name the faults",
        "fewer --rollout.num-workers if they run out of memory",
    ),
    "divergence": (
        "a smaller learning rate, fewer --update.epochs, or a KL penalty (kl_coef of the method)",
        "for a collapse of the entropy a larger entropy_coef, or +epo",
        "--guards.on-divergence warn continues in spite of it",
    ),
    DISK: (
        "make room on the disk of the run folder, then continue with --resume",
        "a larger --checkpoint-every does not help: only the two newest checkpoints are kept",
    ),
    FILES: ("look at the rights and the disk of the run folder, then continue with --resume",),
    MEMORY: (
        "continue with --resume and --update.gradient-checkpointing, or a smaller --update.max-micro-batch-tokens or "
        "--rollout.num-envs",
        "--lora-rank in a new run",
    ),
    INTERRUPT: ("continue with --resume",),
    ERROR: ("fix what the message names, then continue with --resume",),
    BUG: ("this is a bug of an environment, a plug-in or turngym: the traceback is in diagnosis.json",),
}
_OUT_OF_MEMORY = (
    "can't allocate memory",  # of torch's allocator on a CPU
    "not enough memory",  # the same on Windows
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
_SHOWN = (
    "rollout/success",
    "rollout/reward_sum",
    "rollout/faults",
    "loss/policy",
    "policy/entropy_sampled",
    "policy/kl_sampler",
    "policy/ratio_max",
    "train/grad_norm",
)


@dataclass(frozen=True)
class Diagnosis:
    """Why a run stopped.

    Args:
        kind: Kind of error; a key of ``ADVICE``.
        what: Description of the error.
        where: Facts about its first occurrence.
        iteration: Number of the current iteration.
        phase: Phase of the run: rollout, update, evaluation, files or setup.
        checkpoint: The last good checkpoint; empty if there is none.
        lost_iterations: Finished iterations that are not in that checkpoint.
        last_metrics: Metrics of the last iterations, the newest last.
        advice: Suggested remedies.
        trace: The traceback.
    """

    kind: str
    what: str
    where: Mapping[str, Any]
    iteration: int
    phase: str
    checkpoint: str
    lost_iterations: int
    last_metrics: Sequence[Mapping[str, Any]] = field(default_factory=list)
    advice: Sequence[str] = ()
    trace: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as a value that JSON can hold; numbers that are not finite become text."""
        return {key: _plain(value) for key, value in asdict(self).items()}

    def in_words(self) -> str:
        """Return it as lines for a person."""
        lines = [f"training stopped in iteration {self.iteration + 1}, while it was busy with {_BUSY[self.phase]}."]
        lines.append(f"  what:       {self.what}")
        if self.where:
            lines.append(f"  where:      {', '.join(f'{key} {_short(value)}' for key, value in self.where.items())}")
        if self.last_metrics:
            last = self.last_metrics[-1]
            shown = ", ".join(f"{name} {_short(last[name])}" for name in _SHOWN if name in last)
            lines.append(f"  metrics:    {shown} (iteration {last['iteration'] + 1})")
        lines.append(f"  checkpoint: {self._kept()}")
        lines += [f"  try:        {advice}" for advice in self.advice]
        return "\n".join(lines)

    def _kept(self) -> str:
        if not self.checkpoint:
            return "none was written yet"
        return f"{self.checkpoint} ({_count_of_lost(self.lost_iterations)})"


_BUSY = {
    "rollout": "rollouts",
    "update": "the update of the weights",
    "evaluation": "an evaluation",
    "files": "writing files",
    "setup": "the model: loading it, its warm-up or its last evaluation",
}


def _count_of_lost(count: int) -> str:
    if not count:
        return "nothing is lost"
    return f"{count} iteration{'s' if count > 1 else ''} after it {'are' if count > 1 else 'is'} lost"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return repr(value) if isinstance(value, str) and not value.isidentifier() else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def kind_of(error: BaseException) -> str:
    """Return what went wrong, in one word.

    >>> kind_of(OSError(28, "No space left on device")), kind_of(ZeroDivisionError())
    ('disk', 'bug')
    """
    if isinstance(error, DivergenceError):
        return error.kind or "divergence"
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPT
    is_full = isinstance(error, OSError) and error.errno in _FULL
    if is_full or any(words in str(error) for words in ("os error 28", "os error 27", "os error 122")):
        return DISK  # safetensors' errors from Rust have an errno only in their text
    if is_out_of_memory(error):
        return MEMORY
    if isinstance(error, OSError):
        return FILES
    return ERROR if isinstance(error, TurngymError) else BUG


def is_out_of_memory(error: BaseException) -> bool:
    """True if an error says that there is not enough memory, on the CPU or a GPU.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory")), is_out_of_memory(RuntimeError())
    (True, False)
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY)


def diagnose(
    error: BaseException,
    *,
    iteration: int,
    phase: str,
    checkpoint: Path | None,
    records: Sequence[Mapping[str, Any]],
    memory: Sequence[str] = (),
) -> Diagnosis:
    """Return why a run stopped.

    Args:
        error: Exception; a KeyboardInterrupt represents every kind of interrupt.
        iteration: Iterations that are finished.
        phase: Phase of the run.
        checkpoint: The last good checkpoint; its name is the number of iterations in it.
        records: Metrics of the last iterations.
        memory: Advice for a run that is out of memory, by its settings.
    """
    kind = kind_of(error)
    message = str(error) if isinstance(error, TurngymError) else f"{type(error).__name__}: {error}"
    what = "an interrupt asked it to stop." if kind == INTERRUPT else message
    done = int(checkpoint.name) if checkpoint is not None else 0
    return Diagnosis(
        kind=kind,
        what=what,
        where=error.where if isinstance(error, DivergenceError) else {},
        iteration=iteration,
        phase=phase,
        checkpoint=str(checkpoint or ""),
        lost_iterations=max(iteration - done, 0),
        last_metrics=list(records[-3:]),
        advice=(kind == MEMORY and memory) or ADVICE.get(kind, ADVICE[BUG]),
        trace="" if kind == INTERRUPT else "".join(traceback.format_exception(error)),
    )
