"""``turngym play``: one episode in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from rich.console import Console
from tyro.conf import Positional

from turngym.agents.backends.human import HumanAgent
from turngym.agents.backends.random import RandomAgent
from turngym.agents.core import Request
from turngym.benchmarks.commands.parsing import Pairs, find_env, key_values, make_text_env, parse
from turngym.envs.core import TextEnv

_QUIT = ("quit", "exit")
Choose = Callable[[Request], str]


@dataclass(frozen=True)
class Arguments:
    """Play one episode in the terminal; `quit` or ctrl-D leaves.

    Args:
        env: Id of the environment, or `module:id`.
        option: An option of the environment, such as max_turns=20; may be repeated.
        seed: Seed of the task; drawn and shown unless given.
        agent: Who plays: you, or an agent that you watch.
        split: Share of the tasks to draw from.
    """

    env: Positional[str]
    option: Pairs = ()
    seed: int | None = None
    agent: Literal["human", "random", "expert"] = "human"
    split: str = "train"


class _Left(Exception):
    """The person at the terminal wants to leave."""


def main(argv: Sequence[str]) -> int:
    """Play one episode; leaving early is no error."""
    arguments = parse(Arguments, argv, "play")
    options = {"split": arguments.split, **key_values(arguments.option, "--option")}
    env = make_text_env(find_env(arguments.env), options)
    seed = _fresh_seed() if arguments.seed is None else arguments.seed
    console = Console(highlight=False)
    console.print(f"{env.env_id}, seed {seed}", style="bold", markup=False)
    try:
        play(env, seed, _chooser(arguments.agent, env, seed, console), console)
    except (_Left, EOFError):
        console.print(f"\nleft after {env.turn} turns")
    finally:
        env.close()
    return 0


def play(env: TextEnv[Any], seed: int, choose: Choose, console: Console) -> None:
    """Play one episode and show what each action led to."""
    observation, info = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        turn = env.turn
        action = choose(Request(0, 0, turn, str(observation), info, env.instructions))
        observation, reward, terminated, truncated, info = env.step(action)
        total += reward
        over = terminated or truncated
        note = "" if info["action_is_valid"] else "  (not a valid action)"
        console.print(f"reward {reward:g}, return {total:g}{note}", style="dim", markup=False)
    console.print(str(observation), markup=False)
    verdict = "solved" if info["success"] == 1 else "turn limit reached" if truncated else "not solved"
    console.print(
        f"{verdict} after {env.turn} turns: return {total:g}, score {info['score']:g}",
        style="bold green" if info["success"] == 1 else "bold red",
    )


def _fresh_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0] >> 1)


def _chooser(name: str, env: TextEnv[Any], seed: int, console: Console) -> Choose:
    if name == "human":
        human = HumanAgent(read=_read, console=console)
        return lambda request: human.act([request])[0].action
    random = RandomAgent(seed)

    def watched(request: Request) -> str:
        if request.turn == 0:
            console.print(request.instructions, style="dim", markup=False)
        console.rule(f"turn {request.turn + 1}")
        console.print(request.observation, markup=False)
        action = env.expert_action() if name == "expert" else random.act([request])[0].action
        console.print(f"action> {action}", style="cyan", markup=False)
        return action

    return watched


def _read(prompt: str) -> str:
    line = input(prompt)
    if line.strip().lower() in _QUIT:
        raise _Left
    return line
