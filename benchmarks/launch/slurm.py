"""A batch script of Slurm (https://slurm.schedmd.com/sbatch.html)."""

from __future__ import annotations

import shlex

from turngym.benchmarks.launch import LAUNCHERS, ClusterJob, Launcher, script

_IN_PLACE = ' --container-mounts "$PWD:$PWD" --container-workdir "$PWD"'
"""Options of Pyxis, so that a container has the folder that the job was submitted from, and leaves its files there."""
_SECONDS_TO_REQUEUE = 120
_RENDEZVOUS = ("--nnodes $SLURM_NNODES", "--rdzv-backend c10d", "--rdzv-endpoint $HEAD:29500", "--rdzv-id $ATTEMPT")


def render(job: ClusterJob) -> str:
    """Return a script that restarts a training run at its time limit, and after the loss of a machine."""
    gpus = f"{job.gpu}:{job.gpus}" if job.gpu else str(job.gpus)
    container = f" --container-image {shlex.quote(job.image)}{_IN_PLACE}" if job.image else ""
    settings = {
        "job-name": job.name,
        "nodes": job.nodes,
        "ntasks-per-node": 1,
        **({"gpus-per-node": gpus} if job.gpus else {}),
        **({"exclusive": None} if job.nodes > 1 else {}),
        "time": job.time_limit,
        "output": f"{job.name}-%j.log",
        "open-mode": "append",
    }
    if job.run_dir:
        seconds = min(_SECONDS_TO_REQUEUE, round(job.hours * 900))  # or a quarter of the time
        settings |= {"requeue": None, "signal": f"B:USR1@{seconds}"}
    head = [f"#SBATCH --{name}" + ("" if value is None else f"={value}") for name, value in settings.items()]
    lines = ["#!/bin/bash", *head, "", "set -u"]
    ranks: list[str] = []
    if job.nodes > 1:
        lines.append('export HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)')
        lines.append("export ATTEMPT=$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}")
        ranks = [*_RENDEZVOUS, f"--nproc-per-node {job.processes}"]
    elif job.processes > 1:
        ranks = ["--standalone", f"--nproc-per-node {job.processes}"]
    run = f"srun --kill-on-bad-exit=1{container} bash -c {shlex.quote(script(job, ranks))}"
    if job.run_dir:
        lines += ["trap 'scontrol requeue $SLURM_JOB_ID' USR1  # at the time limit", f"{run} &", "wait $!"]
    else:
        lines.append(run)
    return "\n".join(lines) + "\n"


LAUNCHERS.register("slurm")(Launcher("turngym.sbatch", render, "sbatch {file}", ("volume",)))
