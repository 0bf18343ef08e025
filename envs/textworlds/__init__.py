"""Adapters for third-party text worlds."""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/BabyAI-v0": Spec(
        "turngym.envs.textworlds.babyai:BabyAI",
        {},
        "Missions of any of BabyAI's levels in words: go to, open, pick up and put next to things seen in part.",
        "babyai",
    ),
    "turngym/BabyAIHard-v0": Spec(
        "turngym.envs.textworlds.babyai:BabyAI",
        {"level": "BossLevel"},
        "BabyAI's last level in words: missions of several parts in nine rooms, with locked doors and obstacles.",
        "babyai",
    ),
    "turngym/Crafter-v0": Spec(
        "turngym.envs.textworlds.crafter:Crafter",
        {},
        "Survive, gather and build in the worlds of Crafter, in words: 22 achievements.",
        "crafter",
    ),
    "turngym/Jericho-v0": Spec(
        "turngym.envs.textworlds.jericho:Jericho",
        {},
        "Interactive fiction: any story file of the Z-machine that you have.",
        "jericho",
    ),
    "turngym/MiniHack-v0": Spec(
        "turngym.envs.textworlds.nethack:MiniHack",
        {},
        "Tasks on one level of NetHack, in words: find the staircase through rooms, corridors and mazes, and others.",
        "nethack",
    ),
    "turngym/NetHack-v0": Spec(
        "turngym.envs.textworlds.nethack:NetHack",
        {},
        "The whole game of NetHack, in words: explore, fight and go down, level by level.",
        "nethack",
    ),
    "turngym/ScienceWorld-v0": Spec(
        "turngym.envs.textworlds.scienceworld:ScienceWorld",
        {},
        "Thirty tasks of school science in a simulated house: boil, measure, wire, grow, mix, find.",
        "scienceworld",
    ),
    "turngym/TextWorld-v0": Spec(
        "turngym.envs.textworlds.textworld:TextWorld",
        {},
        "Games that TextWorld generates: collect a coin, hunt a treasure, cook a recipe, or a quest of your own sizes.",
        "textworld",
    ),
    "turngym/TextWorldExpress-v0": Spec(
        "turngym.envs.textworlds.textworld_express:TextWorldExpress",
        {},
        "Eight text games in procedurally generated houses: find, sort, cook, tidy up, read a map.",
        "text",
    ),
}
