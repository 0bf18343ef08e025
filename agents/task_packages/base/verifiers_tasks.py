"""Environments of verifiers (0.4, its v1 interface): the id of an installed taskset; options are those of ``--env``."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

PACKAGE = "verifiers"
_MOST = 1000
"""Tasks of a set without an end."""


def tasks(name: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield number and prompt of each task; of a set without an end the first 1,000."""
    taskset = _environment(name, options).taskset
    for place, task in enumerate(taskset if taskset.bounded else taskset.take(_MOST)):
        yield str(place), task.data.prompt_text or task.data.name or ""


def play(name: str, task: str, options: dict[str, Any], model: Mapping[str, str]) -> float:
    """Play a task once, and return its reward."""
    from verifiers.v1.clients import EvalClientConfig, ModelContext

    env = _environment(name, options)
    client = EvalClientConfig(base_url=model["base_url"], api_key_var="OPENAI_API_KEY")
    context = ModelContext(model=model["name"], client=client)

    async def run() -> Any:
        chosen = next(itertools.islice(iter(env.taskset), int(task), None))
        async with env.serving():
            return await env.run_slot(env.slots(chosen)[0], context)

    episode = asyncio.run(run())
    errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
    if errors or not episode.ok:
        raise RuntimeError(f"{name} failed in the task {task}: {errors[0].message if errors else 'without a reason'}")
    learning = [trace for trace in episode.traces if trace.agent.trainable]
    if len(learning) != 1:
        raise SystemExit(f"{name} plays {len(learning)} agents in an episode, and one is trained: use another taskset.")
    if not learning[0].rewards:
        raise SystemExit(f"{name} gives no reward: expected a method with @vf.reward in its Task.")
    return float(learning[0].reward)


def _environment(name: str, options: dict[str, Any]) -> Any:
    """Return the environment of a taskset; agents run on this machine, without tools unless the set says otherwise."""
    import verifiers.v1  # noqa: F401  # missing, it is reported as such
    from verifiers.v1.configs.agent import AgentConfig
    from verifiers.v1.utils.loaders import default_harness_id, env_config_type, load_environment, resolve_env_config

    settings: dict[str, Any] = {"taskset": {"id": name}}
    harness = default_harness_id(name)
    for seat, field in env_config_type(name).model_fields.items():
        if isinstance(field.default, AgentConfig):
            settings[seat] = {"runtime": {"type": "subprocess"}}
            if harness == "bash":
                settings[seat]["harness"] = {"id": "null"}
    for key, value in options.items():
        place = settings
        *path, last = key.split(".")
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return load_environment(resolve_env_config(settings))
