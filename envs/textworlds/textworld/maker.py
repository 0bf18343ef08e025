"""The process that builds one of TextWorld's games: ``python -m ...textworld_maker FOLDER SECONDS REQUEST``.

It leaves the story, the facts that TextWorld keeps next to it, and a walkthrough that was played to the end.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turngym.envs.textworlds.textworld.build import ABOUT, FACTS, STORY

_IDLE = ("inventory", "look")
_ATTEMPTS = 10
_NEXT = 1_000_000
"""Distance between the seeds of a request: some games cannot be won, because two things have names too much alike."""


def make(request: Mapping[str, Any], folder: Path) -> None:
    """Build the game of a request.

    Args:
        request: See :func:`turngym.envs.textworlds.textworld.build.built`.
        folder: Empty destination folder.

    Raises:
        ValueError: None of ten seeds gives a game that can be won.
    """
    for attempt in range(_ATTEMPTS):
        game, walkthrough = _attempt({**request, "seed": int(request["seed"]) + attempt * _NEXT}, folder)
        if walkthrough:
            about = {"walkthrough": walkthrough, "max_score": game.max_score, "request": request}
            (folder / ABOUT).write_text(json.dumps(about), encoding="utf8")
            return
    raise ValueError(f"the walkthroughs of {_ATTEMPTS} games do not win")


def _attempt(request: Mapping[str, Any], folder: Path) -> tuple[Any, list[str]]:
    """Return a game and its walkthrough, empty if it does not win; leave its files and no others."""
    import textworld
    from textworld.generator import compile_game

    options = textworld.GameOptions()
    options.seeds, options.path, options.force_recompile = request["seed"], str(folder / STORY), True
    game = _generate(request, options)
    compile_game(game, options)
    for path in folder.iterdir():
        if path.name not in (STORY, FACTS):
            path.unlink()
    return game, _shortened(folder, list(game.metadata.get("walkthrough") or []))


def _generate(request: Mapping[str, Any], options: Any) -> Any:
    from textworld.challenges import CHALLENGES
    from textworld.generator import make_game

    name, params = request["game"], dict(request["params"])
    options.grammar.only_last_action = bool(params.pop("only_last_action", 0))
    if name == "custom":
        options.nb_rooms, options.nb_objects = params["world_size"], params["nb_objects"]
        options.quest_length, options.quest_breadth = params["quest_length"], params["quest_breadth"]
        options.nb_parallel_quests = params["nb_parallel_quests"]
        return make_game(options)
    if name == "cooking":
        params |= {flag: bool(params[flag]) for flag in ("open", "cook", "cut", "drop")}
        params |= {"recipe_seed": int(request["seed"]), "split": request["foods"]}
    if name == "simple":
        params["test"] = False
    return CHALLENGES[f"tw-{name}"][1](params, options)


def _shortened(folder: Path, commands: list[str]) -> list[str]:
    """Return a walkthrough less what does nothing, such as to open what is open; empty if it does not win."""
    import textworld

    engine = textworld.start(str(folder / STORY), textworld.EnvInfos(admissible_commands=True, policy_commands=True))
    try:
        told = engine.reset()
        commands = commands or list(told.policy_commands)
        kept = []
        for command in commands:
            if command in told.admissible_commands and command not in _IDLE and not told.won:
                told, _, _ = engine.step(command)
                kept.append(command)
        return kept if told.won else []
    finally:
        engine.close()


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


def main(folder: str, seconds: str, request: str) -> None:
    """Build a game and end; also when the process that asked for it ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    make(json.loads(request), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
