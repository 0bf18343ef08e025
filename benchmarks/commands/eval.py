"""``turngym eval``: an agent on a suite or an environment."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tyro.conf import Positional

from turngym.agents.backends import AgentSettings, make_agent
from turngym.agents.backends.expert import ExpertAgent
from turngym.agents.backends.random import RandomAgent
from turngym.agents.core import Agent
from turngym.agents.intervals import Estimate
from turngym.benchmarks.commands.parsing import Pairs, find_env, key_values, make_text_env, parse
from turngym.benchmarks.submission import Played, require_free, results, write_submission
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry, SuiteResult, evaluate_suite
from turngym.errors import ConfigError, nearest
from turngym.wrappers.action_format import action_format

_DEFAULT_EPISODES = 100


@dataclass(frozen=True)
class Arguments:
    """Evaluate an agent on a suite or an environment.

    Args:
        target: Name of a suite, id of an environment, or `module:id`.
        agent: Who plays: random, expert, scripted:ACTION,ACTION, hf:PATH_OR_NAME, or module:PACKAGE.MODULE.NAME.
        episodes: Episodes of each environment, on distinct tasks; the suite's number, or up to 100, unless given.
        seed: Seed of what the agent draws and, outside of a suite, of the choice of tasks.
        split: Share of the tasks to draw from; a suite has its own.
        option: An option of the environment, such as max_turns=20; may be repeated; a suite has its own.
        temperature: Sampling temperature of a model; 0 always takes the likeliest token.
        top_p: Nucleus share of a model's sampling.
        max_new_tokens: Longest completion of a model.
        format: How a model writes an action: tag, boxed, json or plain.
        prompt: A setting of a model's prompts, such as history=3 or instructions=false; may be repeated.
        num_envs: Environments that are played side by side.
        backend: Backend of the vector: sync or process.
        schedule: lockstep repeats to the bit, continuous never waits for the slowest environment.
        baselines: Also play the random and the expert agent on the same tasks and show the normalised result.
        out: A new folder for metadata, configuration, results, episodes and transcripts.
        json: Print the results as JSON.
    """

    target: Positional[str]
    agent: str
    episodes: int | None = None
    seed: int = 0
    split: str = "test"
    option: Pairs = ()
    temperature: float = 0.0
    top_p: float = 1.0
    max_new_tokens: int = 256
    format: str = "tag"
    prompt: Pairs = ()
    num_envs: int = 32
    backend: str = "sync"
    schedule: Literal["lockstep", "continuous"] = "lockstep"
    baselines: bool = False
    out: Path | None = None
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Evaluate, print a table, and write the folder if one was asked for."""
    arguments = parse(Arguments, argv, "eval")
    _check_numbers(arguments)
    if arguments.out is not None:
        require_free(arguments.out)
    suite = chosen_suite(arguments)
    settings = agent_settings(arguments)
    agent = make_agent(arguments.agent, settings)
    console = Console(highlight=False, quiet=arguments.json)
    played = _play(suite, agent, settings, arguments, console)
    if arguments.out is not None:
        write_submission(arguments.out, played)
    if arguments.json:
        print(json.dumps(results(played), indent=2, sort_keys=True, ensure_ascii=False))
        return 0
    console.print(results_table(played))
    if arguments.out is not None:
        console.print(f"written to {arguments.out}", markup=False)
    return 0


def _check_numbers(arguments: Arguments) -> None:
    """Refuse numbers that make no sense, in the words of the command line."""
    if arguments.episodes is not None and arguments.episodes < 1:
        raise ConfigError(f"--episodes must be at least 1, got {arguments.episodes}.")
    if arguments.num_envs < 1:
        raise ConfigError(f"--num-envs must be at least 1, got {arguments.num_envs}.")
    if arguments.max_new_tokens < 1:
        raise ConfigError(f"--max-new-tokens must be at least 1, got {arguments.max_new_tokens}.")
    if not arguments.temperature >= 0:
        raise ConfigError(f"--temperature must be 0 or more, got {arguments.temperature}.")
    if not 0 < arguments.top_p <= 1:
        raise ConfigError(f"--top-p must lie above 0 and at most at 1, got {arguments.top_p}.")


def chosen_suite(arguments: Arguments) -> Suite:
    """Return the suite of that name, or one that holds a single environment.

    Raises:
        UnknownName: There is neither a suite nor an environment of that name.
        ConfigError: An option is wrong, or belongs to an environment where a suite was asked for.
    """
    if arguments.target in SUITES:
        if arguments.option or arguments.split != "test":
            raise ConfigError(f"the suite {arguments.target!r} has its own options and split: leave out --option and --split.")
        return SUITES[arguments.target]
    env_id = find_env(arguments.target, SUITES, "suite or environment")
    options = {"split": arguments.split, **key_values(arguments.option, "--option")}
    make_text_env(env_id, options).close()  # a wrong option is told before anything is played
    wanted = arguments.episodes
    entry = SuiteEntry(env_id, options, wanted or _DEFAULT_EPISODES, arguments.seed, takes_fewer=wanted is None)
    return Suite(env_id, 0, "One environment.", (entry,))


def agent_settings(arguments: Arguments) -> AgentSettings:
    """Return what the agent is made with.

    Raises:
        UnknownName: There is no such action format.
        ConfigError: There is no such setting of prompts.
    """
    action_format(arguments.format)
    prompt = key_values(arguments.prompt, "--prompt")
    if prompt:
        from turngym.agents.prompts import PromptConfig

        known = [field.name for field in dataclasses.fields(PromptConfig)]
        for key in prompt:
            if key not in known:
                raise ConfigError(f"prompts have no setting {key!r}. {nearest(key, known)}")
        PromptConfig(**prompt)
    return AgentSettings(
        seed=arguments.seed,
        format=arguments.format,
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        max_new_tokens=arguments.max_new_tokens,
        prompt=prompt,
    )


def _play(suite: Suite, agent: Agent, settings: AgentSettings, arguments: Arguments, console: Console) -> Played:
    """Play all episodes behind a progress bar."""
    execution = {"num_envs": arguments.num_envs, "backend": arguments.backend, "schedule": arguments.schedule}
    started = _now()
    agents: dict[str, Agent] = {"": agent}
    if arguments.baselines:
        agents |= {"random": RandomAgent(arguments.seed), "expert": ExpertAgent()}
    seeds = [entry.find_seeds(arguments.episodes) for entry in suite.entries]
    found: dict[str, SuiteResult] = {}
    with _progress(console, is_silent=arguments.agent.partition(":")[0] == "human") as progress:
        for name, player in agents.items():
            task = progress.add_task(name or "episodes", total=sum(map(len, seeds)))
            found[name] = evaluate_suite(
                suite,
                player,
                seeds,
                num_envs=arguments.num_envs,
                backend=arguments.backend,
                schedule=arguments.schedule,
                on_episode=_advance(progress, task),
            )
    result = found.pop("")
    return Played(result, seeds, arguments.agent, agent, settings, execution, started, _now(), found)


def _advance(progress: Progress, task: Any) -> Callable[[object], None]:
    return lambda trajectory: progress.advance(task)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _progress(console: Console, *, is_silent: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=is_silent or console.quiet)


def results_table(played: Played) -> Table:
    """Return one line an environment, the mean of a suite below."""
    suite = played.result.suite
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption="in brackets: 95 % interval", caption_justify="left")
    for name in ("environment", "success %", "score", "return", "turns", "invalid %", "faults", "episodes"):
        table.add_column(name, justify="left" if name == "environment" else "right")
    shown: list[tuple[str, SuiteResult]] = [(played.agent_name, played.result), *played.baselines.items()]
    for agent_name, found in shown:
        if played.baselines:
            table.add_row(f"[bold]{escape(agent_name)}[/bold]")
        for entry, result in zip(suite.entries, found.results, strict=True):
            table.add_row(
                escape(entry.label.removesuffix(" split=test")),
                _interval(result.success, 100, 1),
                _interval(result.score, 1, 2),
                _interval(result.reward_sum, 1, 2),
                _interval(result.turns, 1, 1),
                f"{100 * result.invalid_actions:.1f}",
                str(result.faults),
                str(len(result.episodes)),
            )
        if len(found.results) > 1:
            scale, digits = (100, 1) if suite.metric == "success" else (1, 2)
            table.add_row(f"[bold]mean {suite.metric}, equal weights[/bold]", _interval(found.mean, scale, digits))
    return table


def _interval(estimate: Estimate, scale: float, digits: int) -> str:
    value, low, high = (f"{scale * number:.{digits}f}" for number in (estimate.value, estimate.low, estimate.high))
    return f"{value} \\[{low}, {high}]"
