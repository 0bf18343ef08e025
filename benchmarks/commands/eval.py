"""``turngym eval``: an agent on a suite or an environment."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

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
from turngym.agents.evaluate import EvaluationResult
from turngym.agents.intervals import Estimate
from turngym.benchmarks.commands.parsing import Pairs, Specs, find_env, key_values, make_text_env, parse
from turngym.benchmarks.submission import Played, normalised, require_free, results, write_submission
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry, SuiteResult, evaluate_suite
from turngym.errors import ConfigError, nearest
from turngym.wrappers.action_format import action_format
from turngym.wrappers.wrapping import wrap

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
        wrapper: A wrapper around the environment, such as history:k=4; may be repeated, the first innermost; a suite
            has its own.
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
    wrapper: Specs = ()
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
    check_numbers(arguments)
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
    for table in results_tables(played):
        console.print(table)
    if arguments.out is not None:
        console.print(f"written to {arguments.out}", markup=False)
    return 0


def check_numbers(arguments: Arguments) -> None:
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
        if arguments.option or arguments.wrapper or arguments.split != "test":
            raise ConfigError(
                f"the suite {arguments.target!r} has its own options and split: leave out --option, --wrapper and "
                "--split."
            )
        return SUITES[arguments.target]
    env_id = find_env(arguments.target, SUITES, "suite or environment")
    options = {"split": arguments.split, **key_values(arguments.option, "--option")}
    wrap(make_text_env(env_id, options), *arguments.wrapper).close()  # what is wrong is told before anything is played
    wanted = arguments.episodes
    entry = SuiteEntry(
        env_id,
        options,
        wanted or _DEFAULT_EPISODES,
        arguments.seed,
        takes_fewer=wanted is None,
        wrappers=arguments.wrapper,
    )
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
    seeds = [entry.find_seeds(arguments.episodes) for entry in suite.entries]
    baselines: dict[str, SuiteResult] = {}
    with _progress(console, is_silent=arguments.agent.partition(":")[0] == "human") as progress:

        def evaluated(name: str, player: Agent) -> SuiteResult:
            task = progress.add_task(name, total=sum(map(len, seeds)))
            return evaluate_suite(
                suite,
                player,
                seeds,
                num_envs=arguments.num_envs,
                backend=arguments.backend,
                schedule=arguments.schedule,
                on_episode=lambda trajectory: progress.advance(task),
            )

        result = evaluated("episodes", agent)
        if arguments.baselines:
            baselines["random"] = evaluated("random", RandomAgent(arguments.seed))
            try:
                baselines["expert"] = evaluated("expert", ExpertAgent())
            except ConfigError as error:  # no solver: there is no upper baseline
                console.print(f"without the expert baseline: {error}", markup=False)
    return Played(result, seeds, arguments.agent, agent, settings, execution, started, _now(), baselines)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _progress(console: Console, *, is_silent: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=is_silent or console.quiet)


def results_tables(played: Played) -> Iterator[Table]:
    """Yield one table an environment, and one for the mean of a suite; the baselines have columns of their own."""
    suite, others = played.result.suite, played.baselines
    shares = normalised(played)
    for index, entry in enumerate(suite.entries):
        table = _empty_table(entry.label, played)
        own = _metric_rows(played.result.results[index])
        beside = [_metric_rows(found.results[index]) for found in others.values()]
        for metric, (value, interval) in own.items():
            table.add_row(metric, value, interval, *[column[metric][0] for column in beside])
        if entry.label in shares:
            table.add_row("normalised", f"{shares[entry.label]:.1f}", "", "0.0", "100.0")
        yield table
    if len(suite.entries) > 1:
        table = _empty_table(f"{suite.name}, version {suite.version}: mean with equal weights", played)
        scale, metric = (100, "success %") if suite.metric == "success" else (1, "score")
        table.add_row(
            metric,
            *_numbers(played.result.mean, scale, 1),
            *[_numbers(found.mean, scale, 1)[0] for found in others.values()],
        )
        yield table


def _empty_table(title: str, played: Played) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric", min_width=17)
    for name in (played.agent_name, "95 % interval", *played.baselines):
        table.add_column(escape(name), justify="right", min_width=9)
    return table


def _metric_rows(result: EvaluationResult) -> dict[str, tuple[str, str]]:
    """Return metric -> mean and interval, as text."""
    return {
        "success %": _numbers(result.success, 100, 1),
        "score": _numbers(result.score, 1, 3),
        "return": _numbers(result.reward_sum, 1, 3),
        "turns": _numbers(result.turns, 1, 2),
        "invalid actions %": (f"{100 * result.invalid_actions:.1f}", ""),
        "faults": (f"{result.faults} of {len(result.episodes)}", ""),
    }


def _numbers(estimate: Estimate, scale: float, digits: int) -> tuple[str, str]:
    value, low, high = (f"{scale * number:.{digits}f}" for number in (estimate.value, estimate.low, estimate.high))
    return value, f"{low} to {high}"
