"""A RayJob of Kubernetes (https://docs.ray.io/en/latest/cluster/kubernetes/getting-started/rayjob-quick-start.html)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from turngym.benchmarks.launch import LAUNCHERS, ClusterJob, Launcher, require_kept, script
from turngym.errors import ConfigError

_FOLDER = "/work"
"""Working directory in the containers; run folders are kept in its folder ``runs``."""


def render(job: ClusterJob) -> str:
    """Return a job that learns on the first machine and plays on the others.

    Raises:
        ConfigError: The image or the volume is missing, or there are several machines and no rollout workers.
    """
    if not job.image:
        raise ConfigError(
            "Kubernetes runs containers: pass --image; `turngym launch docker` writes a file to build one."
        )
    require_kept(job)
    if job.nodes > 1 and not any(word.startswith("--rollout.ray.") for word in job.words):
        raise ConfigError(
            "on Kubernetes the machines after the first play episodes: the run needs --rollout.ray.address auto, "
            "--rollout.ray.workers and --rollout.ray.gpus."
        )
    ranks = ["--standalone", f"--nproc-per-node {job.processes}"] if job.processes > 1 else []
    entry = f"bash -c {shlex.quote(f'cd {_FOLDER}' + chr(10) + script(job, ranks))}"
    workers = {
        "groupName": "players",
        "replicas": job.nodes - 1,
        "minReplicas": job.nodes - 1,
        "maxReplicas": job.nodes - 1,
        "rayStartParams": {},
        "template": _pod(job, "player"),
    }
    cluster = {
        "headGroupSpec": {"rayStartParams": {"num-gpus": "0"}, "template": _pod(job, "learner")},
        "workerGroupSpecs": [workers] if job.nodes > 1 else [],
    }
    spec = {
        "entrypoint": entry,
        "activeDeadlineSeconds": round(job.hours * 3600),
        "backoffLimit": 3,
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": cluster,
    }
    content = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": job.name}, "spec": spec}
    return "\n".join(_yaml(content)) + "\n"


def _pod(job: ClusterJob, name: str) -> dict[str, Any]:
    container: dict[str, Any] = {"name": name, "image": job.image, "workingDir": _FOLDER}
    if job.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": job.gpus}}
    spec: dict[str, Any] = {"containers": [container]}
    if job.volume:
        container["volumeMounts"] = [{"name": "runs", "mountPath": f"{_FOLDER}/runs"}]
        spec["volumes"] = [{"name": "runs", "persistentVolumeClaim": {"claimName": job.volume}}]
    if job.gpu:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": job.gpu}
    return {"spec": spec}


def _yaml(content: dict[str, Any], indent: str = "") -> list[str]:
    """Return tables and lists as lines of YAML, whose other values are JSON."""
    lines: list[str] = []
    for name, value in content.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", *_yaml(value, f"{indent}  ")]
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            lines.append(f"{indent}{name}:")
            for each in value:
                first, *others = _yaml(each, f"{indent}    ")
                lines += [f"{indent}  - {first.strip()}", *others]
        else:
            lines.append(f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}")
    return lines


LAUNCHERS.register("kubernetes")(Launcher("turngym.rayjob.yaml", render, "kubectl create -f {file}"))
