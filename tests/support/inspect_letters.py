"""Tasks of Inspect AI for tests; each score is appended to the file ``log`` with its sample's id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver


@solver  # type: ignore[untyped-decorator]
def again() -> Solver:
    """Return a solver that asks for more and lets the model answer."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.messages.append(ChatMessageUser(content="Say more."))
        return await generate(state)

    return solve


@scorer(metrics=[mean()])  # type: ignore[untyped-decorator]
def even(log: str, kind: str) -> Scorer:
    """Return a scorer of the share of characters with an even number."""

    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        value: Any = sum(ord(letter) % 2 == 0 for letter in said) / max(len(said), 1)
        if kind == "words":
            value = "quite good"
        elif kind == "several":
            value = {"even": value, "long": len(said)}
        if log:
            with Path(log).open("a") as lines:
                lines.write(f"{state.sample_id} {value}\n")
        return Score(value=value, answer=said)

    return score


@task  # type: ignore[untyped-decorator]
def letters(log: str = "", kind: str = "number") -> Task:
    """Return three samples, of which one has no id of its own."""
    samples = [Sample(input=f"Say something, {number}.", target="", id=f"s{number}") for number in range(2)]
    samples.append(Sample(input=[ChatMessageUser(content="Say anything.")], target="", id=7))
    return Task(dataset=MemoryDataset(samples), solver=[generate(), again()], scorer=even(log, kind))


@task  # type: ignore[untyped-decorator]
def patterns(log: str = "") -> Task:
    """Return samples without calls, whose ids are patterns that fit one another."""
    samples = [Sample(input="Say something.", target="", id=id) for id in ("q1", "q?", "a[1]", "patterns:q1")]
    return Task(dataset=MemoryDataset(samples), solver=[], scorer=even(log, "number"))
