"""Native text games, written from their rules."""

from turngym.envs.registration import Spec

SPECS = {
    "turngym/FrozenLake-v0": Spec(
        "turngym.envs.textgames.frozen_lake:FrozenLake", {}, "Cross a frozen lake without falling into a hole."
    ),
    "turngym/FrozenLakeSlippery-v0": Spec(
        "turngym.envs.textgames.frozen_lake:FrozenLake",
        {"slippery": True, "max_turns": 60},
        "Cross a frozen lake whose ice makes you slip.",
    ),
    "turngym/GuessTheNumber-v0": Spec(
        "turngym.envs.textgames.guess_the_number:GuessTheNumber",
        {},
        "Find a hidden number from higher and lower.",
    ),
    "turngym/Sokoban-v0": Spec(
        "turngym.envs.textgames.sokoban:Sokoban", {}, "Push a box onto its goal in a small room."
    ),
    "turngym/SokobanHard-v0": Spec(
        "turngym.envs.textgames.sokoban:Sokoban",
        {"size": 8, "boxes": 2, "max_turns": 60},
        "Push two boxes onto their goals in a larger room.",
    ),
    "turngym/TowerOfHanoi-v0": Spec(
        "turngym.envs.textgames.tower_of_hanoi:TowerOfHanoi", {}, "Move a tower of discs to another peg."
    ),
}
