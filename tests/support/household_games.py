"""ALFWorld's two layouts on disk, filled with generated households; and the real data, where it is."""

import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.household.env import Household
from turngym.envs.household.world import ABILITY_OF, KINDS, LOOK, MARK_OF, TWO, Goal, World

REAL = Path(__file__).parents[3] / "shared" / "data" / "alfworld"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="ALFWorld's games are not beside this checkout")
GRAMMAR = """grammar :: \"\"\"
{"intro": [{"rhs": "Hello.\\n\\n#look.feedback#\\n\\n#task#"}],
 "task": [{"rhs": "Your task is to: {goal_text}."}]}
\"\"\";
action help {
    template :: "help";
    feedback :: "
Write a command.
";
}
"""


_CONSTANTS = ("sink", "sinkbasin", "microwave", "fridge"), ("knife", "butterknife")
_ASKS = {"clean": "isclean", "hot": "ishot", "cool": "iscool", "sliced": "issliced", "on": "istoggled"}


def generated(count: int, split: str = "train") -> list[dict[str, Any]]:
    """Return games as the compact layout holds them; the walkthroughs are the planner's."""
    games = []
    for seed in range(count):
        kind = KINDS[seed % len(KINDS)]
        env = Household(kind=kind, split=split, expert="planner", receptacles=6, distractors=3)
        env.reset(seed=seed)
        world, walkthrough, success = env.house.world, [], -1
        while success < 0:
            walkthrough.append(env.expert_action())
            success = env.step(walkthrough[-1])[4]["success"]
        games.append(
            {
                "id": f"{kind}-{seed}/trial_{seed}",
                "task_type": kind,
                "goal_text": world.task.removeprefix("Your task is to: ").removesuffix("."),
                "pddl_problem": write_problem(world),
                "walkthrough": walkthrough,
            }
        )
    return games


def write_compact(folder: Path, games: Sequence[dict[str, Any]], fold: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "alfred.twl2").write_text(GRAMMAR)
    with lzma.open(folder / f"games.{fold}.jsonl.xz", "wt") as file:
        file.writelines(json.dumps(game) + "\n" for game in games)


def write_official(folder: Path, games: Sequence[dict[str, Any]], fold: str) -> None:
    for game in games:
        trial = folder / "json_2.1.1" / fold / game["id"]
        trial.mkdir(parents=True)
        content = {
            "pddl_domain": "",
            "grammar": GRAMMAR.replace("{goal_text}", game["goal_text"]),
            "pddl_problem": game["pddl_problem"],
            "walkthrough": game["walkthrough"],
            "solvable": True,
        }
        (trial / "game.tw-pddl").write_text(json.dumps(content))


def write_problem(world: World) -> str:
    """Return a game as a problem in ALFWorld's domain, which TextWorld's planner can play.

    Names come out as they are, given that those of one type stand together with falling numbers.
    """
    place_types = sorted({each.type for each in world.receptacles} | {one for one, _ in world.fits} | {*_CONSTANTS[0]})
    thing_types = sorted({each.type for each in world.things} | {one for _, one in world.fits} | {*_CONSTANTS[1]})
    places = [_id(each.name, number) for number, each in enumerate(world.receptacles)]
    things = [_id(each.name, number) for number, each in enumerate(world.things)]
    locations = {each.location for each in world.receptacles} | {world.start} | {at for _, at in world.around}
    declared = ["agent1 - agent"]
    declared += [f"{each}type - rtype" for each in place_types] + [f"{each}type - otype" for each in thing_types]
    declared += [f"{each} - receptacle" for each in places] + [f"{each} - object" for each in things]
    declared += [f"loc_bar_{each} - location" for each in sorted(locations)]
    facts = [f"atlocation agent1 loc_bar_{world.start}"]
    for each, receptacle in zip(places, world.receptacles, strict=True):
        facts += [f"receptacletype {each} {receptacle.type}type"]
        facts += [f"receptacleatlocation {each} loc_bar_{receptacle.location}"]
        facts += [f"openable {each}"] if receptacle.is_openable else []
    for each, thing in zip(things, world.things, strict=True):
        facts += [f"objecttype {each} {thing.type}type", *(f"{ability} {each}" for ability in sorted(thing.abilities))]
        facts += [f"inreceptacleobject {things[inner]} {each}" for inner in thing.inside]
    facts += [f"inreceptacle {things[thing]} {places[receptacle]}" for thing, receptacle in world.inside]
    facts += [f"objectatlocation {things[thing]} loc_bar_{at}" for thing, at in world.around]
    facts += [f"cancontain {place}type {thing}type" for place, thing in sorted(world.fits)]
    facts += [f"{_ASKS[mark]} {things[thing]}" for mark, thing in sorted(world.marks)]
    lines = "\n".join(f"({fact})" for fact in facts)
    goals = "\n".join(_write_goal(goal) for goal in world.goals)
    head = "(define (problem household) (:domain alfred)\n(:objects\n"
    return f"{head}{chr(10).join(declared)})\n(:init\n{lines})\n(:goal (and {goals})))\n"


def _id(name: str, number: int) -> str:
    return f"{name.split()[0]}_bar_{number:04d}"


def _write_goal(goal: Goal) -> str:
    thing = f"(objecttype ?o {goal.thing}type)"
    target = f"(receptacletype ?r {goal.target}type)"
    if goal.kind == LOOK:
        return (
            f"(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objecttype ?ot {goal.target}type) "
            "(toggleable ?ot) (istoggled ?ot) (receptacleatlocation ?r ?l) (atlocation ?a ?l) (inreceptacle ?ot ?r)))"
            f"(exists (?o - object ?a - agent) (and {thing} (holds ?a ?o)))"
        )
    if goal.kind == TWO:
        other = thing.replace("?o ", "?o2 ")
        return (
            f"(exists (?r - receptacle) (exists (?o - object) (and {thing} {target} (inreceptacle ?o ?r) (exists "
            f"(?o2 - object) (and (not (= ?o ?o2)) {other} {target} (inreceptacle ?o2 ?r))))))"
        )
    mark = MARK_OF.get(goal.kind)
    asked = f"({ABILITY_OF[mark]} ?o) ({_ASKS[mark]} ?o)" if mark else ""
    return f"(exists (?r - receptacle) (exists (?o - object) (and {thing} {target} {asked} (inreceptacle ?o ?r))))"
