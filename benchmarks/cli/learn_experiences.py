"""``turngym learn-experiences``: training-free GRPO, a list of experiences learned from groups of episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.table import Table
from tyro.conf import Positional

from turngym.agents.chat import ChatModel
from turngym.agents.core import Agent
from turngym.agents.players import make_agent
from turngym.agents.verifiers.model import judge_of
from turngym.benchmarks.cli import eval as evaluation
from turngym.benchmarks.cli.options.parsing import Pairs, Specs, find_env, key_values, make_text_env, parse
from turngym.benchmarks.cli.options.sources import with_source
from turngym.benchmarks.cli.terminal.evaluation import LiveTable, show_retries
from turngym.benchmarks.evaluation.experiences import EXPERIENCES, Learner, Learning, learn_experiences
from turngym.benchmarks.evaluation.folder import require_free
from turngym.terminal.console import Console
from turngym.terminal.failures import resumable
from turngym.terminal.interrupted import STOPPING, acknowledged
from turngym.terminal.output import print_json
from turngym.wrappers.wrapping import wrap

USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Learn without gradients: a model compares good and bad attempts and edits a list of experiences for prompts.

    Plays groups of attempts at tasks of the train split, edits the list after each group in which returns differ, and
    plays tasks of the dev split before the first and after every round. Use the list with `turngym eval --style
    experiences:file=OUT/experiences.json`.

    Args:
        env: Environment id, `module:id`, `module:Class` or `path/to/file.py:Class`.
        agent: Agent that plays: hf:PATH_OR_NAME, vllm:PATH_OR_NAME or openai:MODEL@URL.
        out: New folder for experiences.json and the episodes.
        reflector: Agent whose model compares attempts and writes edits (default: that of --agent).
        reflection_tokens: Maximum length of a comparison with its edits in tokens.
        rounds: Rounds of playing and editing.
        tasks: Tasks per round, one group each.
        group_size: Attempts at each task.
        held_out: Tasks of the dev split that are played before the first and after every round.
        most: Maximum number of experiences.
        longest: Maximum length of an experience in characters; longer ones are ignored.
        option: Environment option, such as max_turns=20.
        wrapper: Wrapper, such as history:k=4; the first is innermost.
        temperature: Sampling temperature of the player; the model that edits is greedy.
        top_p: Nucleus sampling threshold.
        max_new_tokens: Maximum completion length of the player in tokens (default: that of the model's training, else
            256).
        format: Action format: auto, tag, boxed, json or plain.
        prompt: Prompt setting, such as mode=conversation or history=3.
        server: Server setting, such as concurrency=32 or timeout=60; also of --reflector.
        seed: Seed of the agent and of the choice of tasks.
        num_envs: Number of parallel environments.
        resume: Resume the run in that folder.
        json: Print the content of experiences.json.
    """

    env: Positional[str]
    agent: str
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    reflector: str = ""
    reflection_tokens: int = 1024
    rounds: int = 3
    tasks: int = 20
    group_size: int = 5
    held_out: int = 50
    most: int = 32
    longest: int = 300
    option: Pairs = ()
    wrapper: Specs = ()
    temperature: float = 0.7
    top_p: float = 1.0
    max_new_tokens: int | None = None
    format: str | None = None
    prompt: Pairs = ()
    server: Pairs = ()
    seed: int = 0
    num_envs: int = 32
    resume: bool = False
    json: bool = False

    style = None
    """The style is what this command learns."""


def main(argv: Sequence[str]) -> int:
    """Learn, and print the curve and the list."""
    arguments = parse(Arguments, with_source(argv), "learn-experiences")
    names = ("rounds", "tasks", "group_size", "held_out", "most", "longest")
    learning = Learning.build("learn-experiences", {name: getattr(arguments, name) for name in names})
    if not arguments.resume:
        require_free(arguments.out)
    learner = _learner(arguments)
    for each in (learner.agent, learner.reflector):
        if isinstance(each, Agent):
            each.prepare()
            show_retries(each)
    console = Console(highlight=False, quiet=arguments.json)
    with acknowledged(STOPPING), resumable(arguments.out, "episodes"):
        found = learn_experiences(
            learner,
            learning,
            arguments.out,
            seed=arguments.seed,
            num_envs=arguments.num_envs,
            resume=arguments.resume,
            watch=lambda name: LiveTable(console, learning.group_size if name.startswith("train") else 1),
        )
    if arguments.json:
        print_json(found, sort_keys=True)
        return 0
    console.print(_curve(found["curve"]))
    for number, text in enumerate(found["experiences"], 1):
        console.print(f"{number}. {text}", markup=False, soft_wrap=True)
    if not any(point["groups"].get("compared") for point in found["curve"]):
        console.print("in no group did returns differ, so there was nothing to compare: try easier tasks.")
    console.print(f"written to {arguments.out / EXPERIENCES}", markup=False, soft_wrap=True)
    return 0


def _learner(arguments: Arguments) -> Learner:
    """Return player and model.

    Raises:
        UnknownName: There is no such environment or agent.
        ConfigError: An option is wrong, or the agent asks no language model.
    """
    env_id = find_env(arguments.env)
    options = key_values(arguments.option, "--option")
    wrap(make_text_env(env_id, {**options, "split": "train"}), *arguments.wrapper).close()
    settings = evaluation.settings_of_options(arguments, arguments.agent, env_id, arguments.seed)
    agent = make_agent(arguments.agent, settings)
    name = arguments.reflector or arguments.agent
    tokens = arguments.reflection_tokens
    shared = agent.greedy(tokens) if name == arguments.agent and isinstance(agent, ChatModel) else None
    asked = dataclasses.replace(settings, max_new_tokens=tokens)
    reflector = shared or judge_of(name, asked, "learn-experiences")
    return Learner(env_id, options, arguments.wrapper, agent, arguments.agent, settings, reflector, name, tokens)


def _curve(curve: Sequence[dict[str, Any]]) -> Table:
    """Return the learning curve on held-out tasks as a table."""
    titles = "round", "experiences", "success %", "95 % interval", "groups compared", "edits", "ignored"
    table = Table(*titles, box=box.SIMPLE_HEAD, pad_edge=False)
    for point in curve:
        success, edits = point["success"], point["edits"]
        changes = sum(edits.get(kind, 0) for kind in ("add", "change", "remove"))
        interval = f"{100 * success['ci_low']:.1f} to {100 * success['ci_high']:.1f}"
        groups = f"{point['groups']['compared']} of {point['groups']['played']}" if point["groups"] else ""
        ignored = edits.get("ignored", 0) + edits.get("no_edit", 0)
        row = point["round"], point["experiences"], f"{100 * success['value']:.1f}", interval, groups, changes, ignored
        table.add_row(*map(str, row))
    return table
