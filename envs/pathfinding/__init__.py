"""Path finding of several agents on a grid, which move at once and must not collide."""

from __future__ import annotations

from turngym.envs.registration import Spec

_GAME = "turngym.envs.pathfinding.game:PathFinding"

SPECS = {
    "turngym/PathFinding-v0": Spec(
        _GAME, {}, "Four players walk to their goals on a grid with walls, all at once.", partner="planner"
    ),
    "turngym/PathFindingEasy-v0": Spec(
        _GAME, {"num_seats": 2, "size": 5, "max_steps": 24}, "Two players on a grid of five rows.", partner="planner"
    ),
    "turngym/PathFindingHard-v0": Spec(
        _GAME,
        {"num_seats": 6, "size": 11, "layout": "rooms", "max_steps": 48},
        "Six players in rooms with doors.",
        partner="planner",
    ),
    "turngym/PathFindingTalk-v0": Spec(
        _GAME,
        {"num_seats": 3, "radius": 2, "talk": True, "max_steps": 48},
        "Three players who see two cells far, and talk to those whom they see.",
        partner="planner",
    ),
}
