"""``turngym eval``: an agent on a suite or an environment."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from turngym.agents.core import Agent
from turngym.agents.players import AgentSettings, make_agent, settings_for
from turngym.agents.prompting.styles import make_style
from turngym.agents.verifiers import make_verifier
from turngym.benchmarks.cli.options.config_file import options_kept
from turngym.benchmarks.cli.options.own_data import with_data
from turngym.benchmarks.cli.options.parsing import (
    Pairs,
    Specs,
    as_pairs,
    find_env,
    key_values,
    make_text_env,
    parse,
    with_target,
)
from turngym.benchmarks.cli.options.prompts import prompt_settings
from turngym.benchmarks.cli.options.sources import with_source
from turngym.benchmarks.cli.options.trained_models import environment_as_trained, tell
from turngym.benchmarks.cli.terminal.evaluation import LiveTable, remarks, require_answers, results_tables, show_retries
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.evaluation.folder import require_free
from turngym.benchmarks.evaluation.records import Evaluation, results
from turngym.benchmarks.evaluation.states import States, recorded_states, remark
from turngym.benchmarks.suites import SUITES, Suite, find_suite, single_suite
from turngym.errors import ConfigError, ServerDown
from turngym.terminal.console import Console
from turngym.terminal.failures import resumable
from turngym.terminal.interrupted import STOPPING, acknowledged
from turngym.terminal.output import print_json
from turngym.wrappers.actions.action_format import action_format
from turngym.wrappers.wrapping import wrap

USES_OWN_MODULES = True
SHOWN = {
    "Task": ("--option", "--wrapper", "--split", "--data", "--reward", "--tools"),
    "Agent": ("--agent", "--temperature", "--max-new-tokens", "--format", "--prompt", "--server"),
    "Episodes": ("--episodes", "--from", "--repeats", "--seed", "--num-envs", "--baselines", "--time-budget"),
    "Results": ("--out", "--resume", "--config", "--json"),
}
"""Options in ``--help``."""


@dataclass(frozen=True)
class Arguments:
    """Evaluate an agent on a suite or an environment.

    Args:
        target: Name of a suite, id of an environment, `module:id`, `module:Class` or `path/to/file.py:Class`; none with
            --data.
        agent: Agent: random, expert, scripted:ACTION,ACTION, hf:PATH_OR_NAME, vllm:PATH_OR_NAME, clicks:FOLDER,
            openai:MODEL@URL for a server, or a custom agent as `path/to/file.py:Class` or `module:Class`.
        start: Recorded states to continue from instead of new episodes: FOLDER@TURN or FOLDER:EPISODE@TURN, such as
            runs/base@50%; see docs/how-to/states.md.
        data: Questions to use instead of an environment: a file (JSON Lines) or hf:NAME; see docs/how-to/questions.md.
        reward: Reward of an answer to --data: auto, exact, numeric, math, ... or a function `path/to/file.py:function`.
        tools: Tools for --data: python, functions `path/to/file.py:function`, and MCP servers `mcp:COMMAND`.
        episodes: Episodes per environment, on distinct tasks (default: the suite's number, or up to 100).
        seed: Seed of the agent and, outside a suite, of the choice of tasks.
        split: Split to draw tasks from; suites define their own.
        option: Environment option, such as max_turns=20; suites define their own. Models trained with turngym use the
            options, wrappers and prompts of their training by default.
        wrapper: Wrapper, such as history:k=4 or `path/to/file.py:Class:k=4`; the first is innermost; suites define
            their own.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus sampling threshold.
        max_new_tokens: Maximum completion length in tokens (default: that of the model's training, else 256).
        format: Action format: auto (the environment's notation if it defines one, else tag), tag, boxed, json or plain
            (default: that of the model's training, else auto).
        style: Prompt style: plain (default), react (reasoning before each action), summary (summarises older turns of
            long prompts), notes (notes of the model stay in view), reflexion (with --repeats: reflects on failed
            attempts), cases:folder=FOLDER (shows similar solved episodes of another evaluation), experiences:file=FILE
            (shows what turngym learn-experiences learned), critic:by=AGENT (a second model or another agent reviews
            each action before it is played; for any agent); options as in summary:budget=1500.
        prompt: Prompt setting, such as mode=window or mode=conversation (default for servers), history=3,
            instructions=false, system=TEXT, thinking=strip, template.enable_thinking=false (a variable of the chat
            template), date=YYYY-MM-DD (current date for the chat template) or chat_template=FILE.
        server: Server setting, such as concurrency=32, timeout=60 or prices=FILE; for vllm, such as max_model_len=8192
            or dtype=bfloat16; for hf, dtype=bfloat16 or device=cpu.
        repeats: Attempts per task, for pass@k and pass^k.
        best_of: Attempts per task, of which the verifier selects one; all are kept.
        verifier: Verifier: progress (of the environment), model or model:AGENT (asks a language model),
            reward_model:FOLDER (of turngym fit-reward), or a custom one such as `path/to/file.py:Class`.
        time_budget: Minutes after which no episode starts; the number of skipped episodes is printed.
        num_envs: Number of parallel environments.
        backend: Backend of the vector: sync or process.
        schedule: lockstep is bit-reproducible, continuous never waits for the slowest environment or completion
            (default: continuous for servers, else lockstep).
        agent_command: Program that plays and calls the model of --agent over HTTP, such as `python my_agent.py`; see
            docs/how-to/any-agent.md for its placeholders.
        agent_seconds: Time limit of the program per episode in seconds.
        agent_answer: Answer of a program that ends without an action: post (none), last (the model's last completion)
            or stdout (its output).
        agent_sandbox: Sandbox of the program: none, which runs it with your rights; bubblewrap, which shows it only the
            system, its own files and the gateway.
        agent_mount: Additional file or folder for a sandboxed program, read-only.
        baselines: Also evaluate the random and the expert agent on the same tasks and show normalised results.
        out: New folder for metadata, configuration, results, episodes and transcripts.
        resume: Resume the evaluation in that folder, if there is one, without repeating finished episodes.
        config: File with options by name (YAML, TOML or JSON), or the folder of an evaluation to repeat; options of the
            command line override it.
        json: Print the results as JSON.
    """

    target: Positional[str]
    agent: str
    start: Annotated[str, arg(name="from")] = ""
    data: str = ""
    reward: str = ""
    tools: tuple[str, ...] = ()
    episodes: int | None = None
    seed: int = 0
    split: str = "test"
    option: Pairs = ()
    wrapper: Specs = ()
    temperature: float = 0.0
    top_p: float = 1.0
    max_new_tokens: int | None = None
    format: str | None = None
    style: str | None = None
    prompt: Pairs = ()
    server: Pairs = ()
    repeats: int = 1
    best_of: int | None = None
    verifier: str | None = None
    time_budget: float | None = None
    num_envs: int = 32
    backend: str = "sync"
    schedule: Literal["lockstep", "continuous"] | None = None
    agent_command: str = ""
    agent_seconds: float = 300.0
    agent_answer: Literal["post", "last", "stdout"] = "post"
    agent_sandbox: Literal["none", "bubblewrap"] = "none"
    agent_mount: Specs = ()
    baselines: bool = False
    out: Path | None = None
    resume: bool = False
    config: Path | None = None
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Evaluate, print a table, and write the folder if one was asked for."""
    found = parse(Arguments, with_target(with_data(with_source(argv))), "eval", SHOWN)
    arguments = asked = dataclasses.replace(found, data="", reward="", tools=())  # they have become options
    _check_numbers(arguments)
    if arguments.out is not None and not arguments.resume:
        require_free(arguments.out)
    known = recorded_states(arguments.start) if arguments.start else find_suite(arguments.target)
    arguments = _as_trained(arguments) if known is None else arguments
    suite = _chosen_suite(arguments, known)
    settings = agent_settings(arguments)
    agent = make_agent(arguments.agent, settings)
    options = key_values(arguments.option, "--option") if known is None else None
    tell(arguments.agent, arguments.target, options, arguments.wrapper, settings)
    if arguments.out is None or not (arguments.out / "results.json").exists():
        agent.prepare()
    show_retries(agent)
    console = Console(highlight=False, quiet=arguments.json)
    if isinstance(suite, States) and (left_out := remark(suite)):
        console.print(left_out, markup=False)
    if prompts_text := getattr(agent, "prompts_text", ""):
        console.print(f"prompts show {prompts_text}", markup=False, soft_wrap=True)
    with options_kept(arguments.out, asked):
        played = _played(suite, agent, settings, arguments, console)
    require_answers(played)
    if arguments.json:
        print_json(results(played), sort_keys=True)
        return 0
    for each in results_tables(played):
        console.print(each)
    for line in remarks(played, arguments.out):
        console.print(line, markup=False)
    return 0


def _played(
    suite: Suite | States, agent: Agent, settings: AgentSettings, arguments: Arguments, console: Console
) -> Evaluation:
    """Return the evaluation, with its progress on the console."""
    repeats = arguments.best_of or arguments.repeats
    is_silent = arguments.agent.partition(":")[0] == "human"
    verifier = make_verifier(arguments.verifier, settings, agent) if arguments.verifier else ""
    with LiveTable(console, repeats, is_silent, arguments.time_budget) as table:
        try:
            with acknowledged(STOPPING), resumable(arguments.out, "episodes"), _player(agent, arguments) as player:
                return evaluate(
                    suite,
                    player,
                    episodes=arguments.episodes,
                    repeats=repeats,
                    seed=arguments.seed,
                    num_envs=arguments.num_envs,
                    backend=arguments.backend,
                    schedule=arguments.schedule,
                    baselines=arguments.baselines,
                    verifier=verifier,
                    time_budget=arguments.time_budget,
                    out=arguments.out,
                    resume=arguments.resume,
                    watcher=table,
                    names={"agent": arguments.agent, "verifier": arguments.verifier or ""},
                    made_with=settings,
                )
        except (KeyboardInterrupt, ServerDown):
            if arguments.out is not None:
                print(f"{arguments.out} keeps the finished episodes: --resume continues with them.", file=sys.stderr)
            raise


def _player(agent: Agent, arguments: Arguments) -> AbstractContextManager[Agent]:
    """Return who plays: the agent, or a program that asks its model."""
    if not arguments.agent_command:
        return nullcontext(agent)
    from turngym.agents.agent_program import QUESTIONS, ProgramConfig
    from turngym.agents.gateway.programs import programs_of

    options = key_values(arguments.option, "--option") if arguments.target == QUESTIONS else {}
    config = ProgramConfig(
        command=arguments.agent_command,
        seconds=arguments.agent_seconds,
        tasks=str(options.get("data", "")),
        answer=arguments.agent_answer,
        sandbox=arguments.agent_sandbox,
        mounts=arguments.agent_mount,
    )
    return programs_of(agent, config)


def _check_numbers(arguments: Arguments) -> None:
    """Check that the numbers are within range."""
    if arguments.episodes is not None and arguments.episodes < 1:
        raise ConfigError(f"--episodes must be at least 1, got {arguments.episodes}.")
    if arguments.num_envs < 1:
        raise ConfigError(f"--num-envs must be at least 1, got {arguments.num_envs}.")
    if arguments.max_new_tokens is not None and arguments.max_new_tokens < 1:
        raise ConfigError(f"--max-new-tokens must be at least 1, got {arguments.max_new_tokens}.")
    if arguments.repeats < 1:
        raise ConfigError(f"--repeats must be at least 1, got {arguments.repeats}.")
    if arguments.best_of is not None and (arguments.best_of < 2 or arguments.repeats != 1):
        raise ConfigError(
            f"--best-of takes 2 or more attempts and sets --repeats itself, got --best-of {arguments.best_of} and "
            f"--repeats {arguments.repeats}."
        )
    if (arguments.best_of is None) != (arguments.verifier is None):
        raise ConfigError("--best-of N and --verifier go together: write --best-of 4 --verifier progress.")
    if arguments.time_budget is not None and not arguments.time_budget > 0:
        raise ConfigError(f"--time-budget must be above 0 minutes, got {arguments.time_budget}.")
    if arguments.resume and arguments.out is None:
        raise ConfigError("--resume continues with what a folder holds: pass the folder as --out.")
    if not arguments.agent_command and (arguments.agent_mount or arguments.agent_sandbox != "none"):
        raise ConfigError("--agent-sandbox and --agent-mount are for programs: pass --agent-command as well.")
    if not arguments.temperature >= 0:
        raise ConfigError(f"--temperature must be 0 or more, got {arguments.temperature}.")
    if not 0 < arguments.top_p <= 1:
        raise ConfigError(f"--top-p must be above 0 and at most 1, got {arguments.top_p}.")


def _as_trained(arguments: Arguments) -> Arguments:
    """Return the arguments with the environment's options and wrappers from the training of the agent's model."""
    given = key_values(arguments.option, "--option")
    options, wrappers = environment_as_trained(arguments.agent, arguments.target, given, arguments.wrapper)
    return dataclasses.replace(arguments, option=as_pairs(options), wrapper=wrappers)


def _chosen_suite(arguments: Arguments, suite: Suite | States | None) -> Suite | States:
    """Return the suite that was asked for, or one that holds a single environment.

    Raises:
        UnknownName: There is neither a suite nor an environment of that name.
        ConfigError: An option is wrong, or belongs to an environment where a suite was asked for.
    """
    if isinstance(suite, States):
        if arguments.target or arguments.option or arguments.wrapper or arguments.split != "test":
            raise ConfigError(
                f"--from {arguments.start} has the environment and its options in its folder: leave out the target, "
                "--option, --wrapper and --split."
            )
        return suite
    if suite is not None:
        if arguments.option or arguments.wrapper or arguments.split != "test":
            raise ConfigError(
                f"the suite {arguments.target!r} has its own options and split: leave out --option, --wrapper and "
                "--split."
            )
        return suite
    env_id = find_env(arguments.target, SUITES, "suite or environment")
    options = {"split": arguments.split, **key_values(arguments.option, "--option")}
    made = wrap(make_text_env(env_id, options), *arguments.wrapper)  # errors are reported before anything is played
    with suppress(Exception):  # user code: the vector counts further failures
        made.close()
    return single_suite(env_id, options, arguments.wrapper, arguments.episodes, arguments.seed)


_MODEL_OPTIONS = ("temperature", "top_p", "max_new_tokens", "format", "style", "prompt", "server")
"""The options of a model, which every command that plays with one has."""


def settings_of_options(options: object, agent: str, env: str, seed: int) -> AgentSettings:
    """Return what another command makes an agent with, checked as those of an evaluation are.

    Args:
        options: The arguments of that command, with those of :data:`_MODEL_OPTIONS`.
        agent: The agent.
        env: Environment or game that it plays.
        seed: Seed of what it draws.

    Raises:
        UnknownName: There is no such action format or style.
        ConfigError: A number is out of range, or there is no such setting of prompts.
    """
    given: dict[str, Any] = {name: getattr(options, name) for name in _MODEL_OPTIONS}
    like = Arguments(env, agent, seed=seed, **given)
    _check_numbers(like)
    return agent_settings(like)


def agent_settings(arguments: Arguments) -> AgentSettings:
    """Return what the agent is made with.

    Raises:
        UnknownName: There is no such action format or style.
        ConfigError: There is no such setting of prompts.
    """
    if arguments.format is not None:
        action_format(arguments.format)
    if arguments.style is not None:
        make_style(arguments.style)
    return settings_for(
        arguments.agent,
        arguments.target,
        seed=arguments.seed,
        format=arguments.format,
        style=arguments.style,
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        max_new_tokens=arguments.max_new_tokens,
        prompt=prompt_settings(arguments.prompt),
        server=key_values(arguments.server, "--server"),
    )
