"""``turngym play``: an environment in the terminal."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import numpy as np
from tyro.conf import Positional, arg

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import make_agent
from turngym.agents.recordings.states import State
from turngym.benchmarks.cli import eval as evaluation
from turngym.benchmarks.cli.options.parsing import Pairs, Specs, key_values, parse, text_env_maker, with_target
from turngym.benchmarks.cli.options.sources import with_source
from turngym.benchmarks.cli.options.trained_models import environment_as_trained, tell
from turngym.benchmarks.cli.terminal.play_commands import Table
from turngym.benchmarks.cli.terminal.play_screen import Screen
from turngym.benchmarks.cli.terminal.play_session import Left, NoSuchCommand, Session
from turngym.benchmarks.evaluation.states import recorded_states
from turngym.errors import ConfigError, TurngymError
from turngym.terminal.console import Console

if TYPE_CHECKING:
    from turngym.envs.vector import TextVectorEnv

_QUIT = ("quit", "exit")
_HUMAN, _EXPERT = "human", "expert"
USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Play an environment in the terminal, or watch an agent play it.

    Type an action, or a command starting with a colon (`:help` lists them).

    Args:
        env: Id of the environment, `module:id`, `module:Class` or `path/to/file.py:Class`.
        start: Recorded state to continue from: FOLDER:EPISODE@TURN, with the environment of the folder.
        option: Environment option, such as max_turns=20.
        wrapper: Wrapper, such as history:k=4; the first is innermost.
        seed: Seed of the task; random by default, and shown.
        agent: Who plays: you (human), or an agent to watch: random, expert, or any of `turngym eval`, such as
            hf:FOLDER. Models trained with turngym use the options, wrappers and prompts of their training.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus sampling threshold.
        max_new_tokens: Maximum completion length in tokens (default: that of the model's training, else 256).
        format: Action format, as in `turngym eval`.
        style: Prompt style: plain, react, summary or notes, as in `turngym eval`.
        prompt: Prompt setting, such as history=3 or template.enable_thinking=false.
        server: Server setting, such as timeout=60.
        split: Split to draw tasks from.
        save: New file for the transcript, written at the end of the episode.
        picture: Whether to show images, if the environment renders them; auto does so in a colour terminal.
    """

    env: Positional[str]
    start: Annotated[str, arg(name="from")] = ""
    option: Pairs = ()
    wrapper: Specs = ()
    seed: int | None = None
    agent: str = "human"
    temperature: float = 0.0
    top_p: float = 1.0
    max_new_tokens: int | None = None
    format: str | None = None
    style: str | None = None
    prompt: Pairs = ()
    server: Pairs = ()
    split: str | None = None
    save: Path | None = None
    picture: Literal["auto", "always", "never"] = "auto"


def main(argv: Sequence[str]) -> int:
    """Play; quitting early is not an error."""
    arguments = parse(Arguments, with_target(with_source(argv)), "play")
    if arguments.save is not None and arguments.save.exists():
        raise ConfigError(f"{arguments.save} exists already: pass another file as --save.")
    arguments, options, wrappers, start = _continued(arguments) if arguments.start else _begun(arguments)
    seed = fresh_seed() if arguments.seed is None else arguments.seed
    agent = watched(arguments, seed, options, wrappers)
    maker = text_env_maker(arguments.env, options, wrappers)
    _forgive_odd_bytes()
    console = Console(highlight=False, force_terminal=True if arguments.picture == "always" else None)
    env = maker()
    if _has_picture(env) and _shows_pictures(console, arguments.picture):
        env.close()
        env = maker(render_mode="rgb_array")
    session, screen = Session(env, maker, seed, start=start), Screen(console)
    try:
        if arguments.agent == _HUMAN:
            play(session, screen, typed(session, screen))
        else:
            watch(session, screen, agent)
        if arguments.save is not None:
            session.save(arguments.save)
            screen.note(f"saved {arguments.save}")
    finally:
        env.close()
    return 0


_Game: TypeAlias = tuple[Arguments, dict[str, Any], Sequence[str], State | None]
"""Arguments, options of the environment, wrappers, and the recorded state to continue from."""


def _begun(arguments: Arguments) -> _Game:
    options = key_values(arguments.option, "--option")
    if arguments.split is not None:
        options = {"split": arguments.split, **options}
    return arguments, *environment_as_trained(arguments.agent, arguments.env, options, arguments.wrapper), None


def _continued(arguments: Arguments) -> _Game:
    if arguments.env or arguments.option or arguments.wrapper or arguments.split or arguments.seed is not None:
        raise ConfigError(
            f"--from {arguments.start} has the environment, its options and the seed in its folder: leave out the "
            "environment, --option, --wrapper, --split and --seed."
        )
    found = recorded_states(arguments.start)
    if len(found) != 1:
        raise ConfigError(f"{arguments.start} names {len(found)} states: name one, as in FOLDER:TASK.ATTEMPT@TURN.")
    [entry], [[state]] = found.suite.entries, found.states.values()
    arguments = dataclasses.replace(arguments, env=entry.env_id, seed=state.seed)
    return arguments, entry.env_kwargs, entry.wrappers, state


def _forgive_odd_bytes() -> None:
    """Replace characters that the terminal cannot show or the input cannot decode."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _has_picture(env: Any) -> bool:
    return "rgb_array" in env.metadata["render_modes"]


def _shows_pictures(console: Console, wanted: str) -> bool:
    has_colours = console.color_system in ("256", "truecolor") and not console.no_color
    return wanted == "always" or (wanted == "auto" and console.is_terminal and has_colours)


def fresh_seed() -> int:
    """Return a random seed."""
    return int(np.random.SeedSequence().generate_state(1)[0] >> 1)


def play(session: Session, screen: Screen, ask: Callable[[str], str]) -> None:
    """Let a person play until they quit.

    Args:
        session: The episode.
        screen: Display.
        ask: Shows a prompt and returns a line; raises EOFError at the end of the input.
    """
    commands = Table(session, screen, fresh_seed)
    session.begin()
    screen.opening(session, is_interactive=True)
    while True:
        try:
            line = ask("over> " if session.is_over else "action> ")
            if line.startswith(":") and not line.startswith("::"):
                commands.run(line)
            elif line.strip().lower() in _QUIT or (session.is_over and not line.strip()):
                raise Left
            elif session.is_over:
                screen.note("The episode is over: :undo, :restart, :next, :save FILE, or Enter to leave.")
            else:
                session.take(line.removeprefix(":") if line.startswith("::") else line)
                screen.turn(session)
                screen.state(session, is_interactive=True)
        except (NoSuchCommand, ConfigError) as error:
            screen.problem(str(error))
        except (Left, EOFError):
            if not session.is_over:
                screen.note(f"left after {len(session.turns)} turns")
            return


def watched(arguments: Arguments, seed: int, options: dict[str, Any], wrappers: Sequence[str]) -> Agent | None:
    """Return the agent that plays; None for a person and for the environment's own expert.

    Raises:
        UnknownName: There is no such agent.
        ServerDown: Its server cannot be played with.
    """
    if arguments.agent in (_HUMAN, _EXPERT):
        return None
    settings = evaluation.settings_of_options(arguments, arguments.agent, arguments.env, seed)
    agent = make_agent(arguments.agent, settings)
    tell(arguments.agent, arguments.env, options, wrappers, settings)
    agent.prepare()
    return agent


def watch(session: Session, screen: Screen, agent: Agent | None) -> None:
    """Let an agent play one episode; the expert of the environment if there is none.

    Raises:
        TurngymError: The agent gave no answer.
    """
    if agent is not None:
        agent.attach(cast("TextVectorEnv", _Slot(session)))
        session.follow = lambda turn: _answered(agent.follow(_request(session), turn.action, turn.completion), session)
    session.begin()
    screen.opening(session, is_interactive=False)
    while not session.is_over:
        decision = Decision(session.hint()) if agent is None else agent.act([_request(session)])[0]
        _answered(decision, session)
        if decision.completion and decision.completion != decision.action:
            screen.completion(decision.completion)
        action = decision.action
        screen.action(action)
        session.take(action)
        screen.turn(session)
        screen.state(session, is_interactive=False)


class _Slot:
    """The environment of a session as a vector, as far as agents ask one."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def call(self, name: str, *arguments: Any, indices: Sequence[int] = (0,)) -> tuple[Any, ...]:
        """Return a value of the environment, or what its method returns."""
        value = getattr(self._session.env, name)
        return (value(*arguments) if callable(value) else value,)


def _request(session: Session) -> Request:
    return Request(0, 0, len(session.turns), session.text, session.info, session.env.instructions)


def _answered(decision: Decision, session: Session) -> None:
    if why := decision.fault or decision.too_long:
        raise TurngymError(f"the agent gave no answer in turn {len(session.turns) + 1}: {why.rstrip('.')}.")


def typed(session: Session, screen: Screen) -> Callable[[str], str]:
    """Return a function that asks the person at the terminal; a line from a pipe is shown, as if it were typed."""
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if is_terminal:
        with suppress(ImportError):  # not on every system
            _complete(session)

    def ask(prompt: str) -> str:
        line = input(prompt)
        if not is_terminal:
            screen.line(line)
        return line

    return ask


def _complete(session: Session) -> None:
    """Let the tabulator complete legal actions and commands."""
    import readline

    from turngym.benchmarks.cli.terminal.play_commands import COMMANDS

    def complete(text: str, state: int) -> str | None:
        line = readline.get_line_buffer()
        known = [f":{name}" for name in COMMANDS] if line.startswith(":") else session.info["legal_actions"]
        fitting = [word for word in known if word.startswith(line)]
        return fitting[state] if state < len(fitting) else None

    readline.set_completer_delims("")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
