"""Suites as tasks of Inspect AI: its model providers, limits and viewer around the environments of turngym.

``inspect eval turngym/turngym_core --model openai/gpt-4o``, or from Python::

    from inspect_ai import eval
    from turngym.benchmarks.inspect_tasks import suite

    eval(suite("turngym-core", episodes=5), model="mockllm/model")

A sample is one task of an environment, and an epoch one attempt at it. The model sees rules and answer format as the
system message and every observation as a message of the user; the conversation holds all turns. Every suite that is
registered is a task, its name with ``_`` for what a name cannot hold.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, Content, ContentImage, ContentText
from inspect_ai.scorer import Score, Scorer, Target, grouped, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from turngym.benchmarks.suites import SUITES, Suite
from turngym.envs.png import png
from turngym.wrappers.actions.action_format import AUTO, action_format
from turngym.wrappers.wrapping import wrap

_OUTCOME = "turngym"
_PER_ENVIRONMENT: Any = grouped(mean(), "label", all="groups")
_SPREAD: Any = stderr(cluster="block")


def _suite_task(chosen: Suite, episodes: int | None = None, format: str = AUTO) -> Task:
    """Return a suite as a task of Inspect AI.

    Args:
        chosen: The suite.
        episodes: Maximum tasks per environment; those of the suite by default.
        format: Name of the action format.
    """
    samples = [
        Sample(
            input=f"{entry.label}, task {number}",
            id=f"{entry.label}:{number}",
            metadata={
                "label": entry.label,
                "env": entry.env_id,
                "options": entry.env_kwargs,
                "wrappers": list(entry.wrappers),
                "seed": seed,
                "block": f"{entry.label}:{seed}",
            },
        )
        for entry in chosen.entries
        for number, seed in enumerate(entry.find_seeds(episodes))
    ]
    return Task(
        dataset=MemoryDataset(samples, name=chosen.name),
        solver=play(format),
        scorer=outcome(),
        name=task_name(chosen.name),
        version=chosen.version,
        metadata={"protocol": chosen.protocol, "metric": chosen.metric},
    )


def task_name(suite_name: str) -> str:
    """Return the name of a suite as that of a task.

    >>> task_name("turngym-core")
    'turngym_core'
    """
    return re.sub(r"\W", "_", suite_name)


@task
def suite(name: str = "turngym-core", episodes: int | None = None, format: str = AUTO) -> Task:
    """Return the suite of that name.

    Args:
        name: Name of the suite.
        episodes: Maximum tasks per environment.
        format: Name of the action format.

    Raises:
        UnknownName: There is no such suite.
    """
    return _suite_task(SUITES[name], episodes, format)


def _named(name: str) -> Callable[..., Task]:
    def one_suite(episodes: int | None = None, format: str = AUTO) -> Task:
        return _suite_task(SUITES[name], episodes, format)

    made: Callable[..., Task] = task(name=task_name(name))(one_suite)
    return made


TASKS = {task_name(name): _named(name) for name in SUITES}
"""Name -> task, one for each registered suite."""


@solver
def play(format: str = AUTO) -> Solver:
    """Return a solver that lets the model play the environment of a sample to the end.

    Args:
        format: Name of the action format.
    """
    action_format(format)  # an unknown name is reported before anything is played

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        facts = state.metadata
        env = wrap(gymnasium.make(facts["env"], **facts["options"]), *facts["wrappers"])
        try:
            observation, info = env.reset(seed=facts["seed"])
            written = action_format(format, bool(env.get_wrapper_attr("finds_action")))
            rules = f"{env.get_wrapper_attr('instructions')}\n{written.sentence}".strip()
            state.messages = [ChatMessageSystem(content=rules), ChatMessageUser(content=_content(observation))]
            actions: list[str] = []
            returns, has_ended = 0.0, False
            while not (has_ended or state.completed):
                state = await generate(state)
                actions.append(written.action_of(state.output.completion))
                observation, reward, terminated, truncated, info = env.step(actions[-1])
                returns += float(reward)
                has_ended = bool(terminated or truncated)
                state.messages.append(ChatMessageUser(content=_content(observation)))
                state.store.set(_OUTCOME, _facts(info, returns, actions))  # a limit may end the sample at any moment
        finally:
            env.close()
        return state

    return solve


def _facts(info: Mapping[str, Any], returns: float, actions: list[str]) -> dict[str, Any]:
    return {
        "success": int(info["success"] == 1),
        "score": float(info["score"]),
        "return": returns,
        "actions": list(actions),
        "fault": info["fault"],
    }


def _content(observation: Any) -> str | list[Content]:
    """Return an observation as the content of a message, with its image where it has one."""
    if isinstance(observation, str):
        return observation
    data = base64.b64encode(png(observation["image"])).decode()
    return [ContentText(text=observation["text"]), ContentImage(image=f"data:image/png;base64,{data}")]


@scorer(
    metrics={
        "success": [_PER_ENVIRONMENT, _SPREAD],
        "score": [_PER_ENVIRONMENT, _SPREAD],
        "return": [_PER_ENVIRONMENT, _SPREAD],
    }
)
def outcome() -> Scorer:
    """Return a scorer that reads what the environment said: success, the benchmark's number, and the return."""

    async def score(state: TaskState, target: Target) -> Score:
        found = state.store.get(_OUTCOME) or {"success": 0, "score": 0.0, "return": 0.0, "actions": []}
        value: dict[str, str | int | float | bool | None] = {
            name: found[name] for name in ("success", "score", "return")
        }
        return Score(value=value, answer=found["actions"][-1] if found["actions"] else None, metadata=found)

    return score
