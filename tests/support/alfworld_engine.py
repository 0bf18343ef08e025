"""TextWorld's own engine on a game of ALFWorld, as ALFWorld sets it up; needs the packages textworld and alfworld."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turngym.envs.household.goals import is_reached
from turngym.envs.household.pddl import read_problem
from turngym.envs.household.rules import NOTHING_HAPPENS, House

RARE = ("use", "slice", "heat", "cool", "clean")
IDLE = ("help", "inventory", "look", "examine")


class State(NamedTuple):
    """What is told at a state."""

    command: str
    text: str
    commands: tuple[str, ...]
    is_won: bool


def start(folder: Path, game: Mapping[str, Any], domain: str, grammar: str) -> Any:
    """Return the unmodified engine with a game."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    path = folder / "game.tw-pddl"
    content = {
        "pddl_domain": domain,
        "grammar": grammar.replace("{goal_text}", game["goal_text"]),
        "pddl_problem": game["pddl_problem"],
        "walkthrough": game["walkthrough"],
        "solvable": True,
    }
    path.write_text(json.dumps(content))
    wanted = textworld.EnvInfos(won=True, admissible_commands=True)
    return textworld.start(str(path), wanted, wrappers=[AlfredDemangler(shuffle=False), AlfredInfos])


def choose(draw: random.Random, commands: Sequence[str], walkthrough: list[str]) -> str:
    """Return the walkthrough's next command, one beside it that changes nothing, or one of a rare verb."""
    verbs = sorted({command.split()[0] for command in commands})
    if walkthrough:
        if draw.random() < 0.6:
            return walkthrough.pop(0)
        verbs = [verb for verb in verbs if verb in IDLE]
    if draw.random() < 0.03:
        return "take nothing from nowhere"
    weights = [2.0 if verb in RARE else 0.3 if verb in IDLE[:3] else 1.0 for verb in verbs]
    verb = draw.choices(verbs, weights)[0]
    return draw.choice([command for command in commands if command.split()[0] == verb])


def trace(
    folder: Path, game: Mapping[str, Any], domain: str, grammar: str, seed: int, steps: int, follow: bool
) -> list[State]:
    """Play a game, either along its walkthrough with idle commands between or at random, and return what was told."""
    engine, draw = start(folder, game, domain, grammar), random.Random(seed)
    try:
        told = engine.reset()
        states = [State("", told.feedback, tuple(told.admissible_commands), bool(told.won))]
        walkthrough = list(game["walkthrough"]) if follow else []
        for _ in range(steps):
            command = choose(draw, told.admissible_commands, walkthrough)
            told, _, done = engine.step(command)
            states.append(State(command, told.feedback, tuple(told.admissible_commands), bool(told.won)))
            if done:
                break
        return states
    finally:
        engine.close()


def ours(states: Sequence[State], game: Mapping[str, Any], grammar: str) -> list[State]:
    """Return what our engine tells when given the same commands."""
    help_text = re.search(r'action help \{.*?feedback :: "\n(.*?)";', grammar, re.DOTALL)
    assert help_text is not None
    house = House(read_problem(game["pddl_problem"], f"Your task is to: {game['goal_text']}."), help_text[1], False)
    told, welcome = [], "-= Welcome to TextWorld, ALFRED! =-\n\n"
    for state in states:
        text = house.act(state.command) if state.command else f"{welcome}{house.look()}\n\n{house.world.task}"
        is_won = is_reached(house, house.world.goals[0])
        told.append(State(state.command, text or NOTHING_HAPPENS, house.commands(), is_won))
    return told
