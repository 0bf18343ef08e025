"""A Dockerfile of an image with turngym, for the other launchers."""

from __future__ import annotations

import json

from turngym.benchmarks.launch import LAUNCHERS, ClusterJob, Launcher

_TEXT = """\
# Build in a clone of turngym.
FROM python:3.12-slim
RUN apt-get update \\
    && apt-get install -y --no-install-recommends bubblewrap git \\
    && rm -rf /var/lib/apt/lists/*
WORKDIR /work
COPY . /tmp/turngym
RUN pip install --no-cache-dir "/tmp/turngym[train,ray]" && rm -rf /tmp/turngym
"""


def render(job: ClusterJob) -> str:
    """Return the recipe; its command is the job's."""
    return f"{_TEXT}CMD {json.dumps(['python', '-m', 'turngym', *job.words], ensure_ascii=False)}\n"


_UNUSED = ("nodes", "gpus", "gpu", "hours", "setup", "image", "volume", "name")
LAUNCHERS.register("docker")(Launcher("Dockerfile", render, "docker build -f {file} -t turngym .", _UNUSED))
