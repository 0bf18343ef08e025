"""A task of SkyPilot (https://docs.skypilot.co/en/latest/reference/yaml-spec.html)."""

from __future__ import annotations

import json
import textwrap

from turngym.benchmarks.launch import LAUNCHERS, ClusterJob, Launcher, require_kept, script
from turngym.errors import ConfigError

_RANKS = (
    "--nnodes $SKYPILOT_NUM_NODES",
    "--node-rank $SKYPILOT_NODE_RANK",
    '--master-addr "$(echo "$SKYPILOT_NODE_IPS" | head -n 1)"',
    "--master-port 29500",
)


def render(job: ClusterJob) -> str:
    """Return a task whose working directory is copied to the machines, and whose runs are kept in a bucket.

    Raises:
        ConfigError: The kind of GPU or the volume is missing.
    """
    if job.gpus and not job.gpu:
        raise ConfigError("SkyPilot chooses machines by their GPU: pass --gpu, such as --gpu H100.")
    require_kept(job)
    ranks = [*_RANKS, f"--nproc-per-node {job.processes}"] if job.nodes * job.processes > 1 else []
    resources = {"accelerators": f"{job.gpu}:{job.gpus}"} if job.gpus else {"cpus": "4+"}
    if job.image:
        resources["image_id"] = f"docker:{job.image}"
    lines = [f"name: {_quoted(job.name)}", f"num_nodes: {job.nodes}", "workdir: .", "resources:"]
    lines += [f"  {name}: {_quoted(value)}" for name, value in resources.items()]
    if job.volume:
        lines += ["file_mounts:", "  ~/sky_workdir/runs:", f"    source: {_quoted(job.volume)}", "    mode: MOUNT"]
    limited = f"timeout --signal INT {round(job.hours * 3600)} "
    lines += ["run: |", textwrap.indent(script(job, ranks, limited), "  ", lambda line: True)]
    return "\n".join(lines) + "\n"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


LAUNCHERS.register("skypilot")(Launcher("turngym.sky.yaml", render, "sky jobs launch {file}"))
