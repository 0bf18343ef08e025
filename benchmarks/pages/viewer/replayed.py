"""Playing recorded episodes again for the viewer: rules, observations and images, and what each seat of a game saw.

The files are untrusted: only what is registered is made, with options that can name neither modules nor files.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from turngym.benchmarks.pages.viewer.forms import Form, facts_of, seen_of
from turngym.benchmarks.pages.viewer.jsonl import items, mapping, number, text
from turngym.envs.png import png
from turngym.envs.vector.slots.boundary import close_quietly, closing_quietly
from turngym.errors import TurngymError
from turngym.system.limited import CallLimits, LimitedProcess
from turngym.system.processes import OncePerProcess

MOST_TURNS, MOST_PICTURES = 2_000, 200
_APART = OncePerProcess(lambda: LimitedProcess(CallLimits(seconds=60.0, answer_mib=256)))


def replayed(source: Mapping[str, Any], recorded: list[str | None] | None = None) -> Form:
    """Play an episode again from its ``replay`` of a form.

    Args:
        source: Environment, options, wrappers, seed and actions; of a recorded file also its header.
        recorded: Observation of each turn, if recorded.

    Returns:
        ``instructions``, ``seen`` at each turn and after the last one, ``images`` (null where there is none), and a
        ``note``, which says what is not as it was.

    >>> import turngym
    >>> found = replayed({"env": "turngym/Sokoban-v0", "options": {}, "wrappers": [], "seed": 1, "actions": ["up"]})
    >>> len(found["seen"]), found["images"][0][:21], found["note"]
    (2, 'data:image/png;base64', '')
    """
    from turngym.agents.recordings.remade import CANNOT_BE_MADE, refused, reset_refused

    options = _without_picture(source["options"])
    reason = refused({"env": source["env"], "options": options, "wrappers": source["wrappers"]})
    reason = reason or reset_refused(mapping(mapping(source.get("header")).get("options")))
    if reason:
        return _nothing(f"It cannot be played again: {reason}.")
    try:
        env = _made(source)
    except CANNOT_BE_MADE as error:
        return _nothing(f"It cannot be played again: {error}")
    try:
        return _played(env, source, recorded or [])
    except (TurngymError, ValueError, TypeError, KeyError) as error:
        return _nothing(f"It cannot be played again: {error}")
    finally:
        close_quietly(env)


def replayed_apart(source: Mapping[str, Any], recorded: list[str | None]) -> Form:
    """Return what :func:`replayed` does, from its own process with limits."""
    try:
        arguments = {"source": source, "recorded": recorded}
        found: Form = _APART.get().call(f"{__name__}:replayed", arguments)
    except TurngymError as error:
        return _nothing(f"It cannot be played again: {error}")
    return found


def game_form_apart(record: Mapping[str, Any], config: Mapping[str, Any]) -> Form:
    """Return what :func:`_game_form` does, played in a separate process with limits."""
    try:
        found: Form = _APART.get().call(f"{__name__}:_game_form", {"record": record, "config": config})
    except TurngymError as error:
        return _told_alone(record, config, str(error))
    return found


def _without_picture(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without the one that the viewer chooses itself."""
    return {key: value for key, value in options.items() if key != "render_mode"}


def _nothing(note: str) -> Form:
    return {"instructions": "", "seen": [], "images": [], "note": note}


def _made(source: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    from turngym.agents.recordings.remade import made
    from turngym.wrappers.recording.replay import rewrap

    options = _without_picture(source["options"])
    creator = gymnasium.spec(source["env"]).entry_point
    kind = gymnasium.envs.registration.load_env_creator(creator) if isinstance(creator, str) else creator
    if "rgb_array" in getattr(kind, "metadata", {}).get("render_modes", ()):
        options["render_mode"] = "rgb_array"
    env = made({"env": source["env"], "options": options, "wrappers": source["wrappers"]})
    return rewrap(env, items(mapping(source.get("header")).get("wrappers")))


def _played(env: gymnasium.Env[Any, Any], source: Mapping[str, Any], recorded: list[str | None]) -> Form:
    from turngym.wrappers.snapshots import written

    header = mapping(source.get("header"))
    observation, _ = env.reset(seed=source["seed"], options=mapping(header.get("options")))
    if mapping(header.get("snapshot")):
        observation, _ = env.get_wrapper_attr("restore")(written(header["snapshot"]))
    instructions = text(env.get_wrapper_attr("instructions"))
    seen, images, note, is_over = [_text(observation)], [_picture(env, observation, 0)], "", False
    for turn, action in enumerate(source["actions"][:MOST_TURNS]):
        if not note and turn < len(recorded) and recorded[turn] not in (None, seen[turn]):
            note = f"From turn {turn + 1} on the replay shows something else than was recorded."
        if is_over:
            note = note or f"The replay is over after turn {turn}, before the recorded end."
            break
        observation, _, terminated, truncated, _ = env.step(action)
        is_over = bool(terminated or truncated)
        seen.append(_text(observation))
        images.append(_picture(env, observation, turn + 1))
    if len(source["actions"]) > MOST_TURNS:
        note = note or f"Only the first {MOST_TURNS} turns were played again."
    return {"instructions": instructions, "seen": seen, "images": images, "note": note}


def _text(observation: Any) -> str:
    return text(seen_of(observation).get("seen", ""))


def _picture(env: gymnasium.Env[Any, Any], observation: Any, turn: int) -> str | None:
    """Return what the agent saw as an image, else what the environment draws."""
    if turn >= MOST_PICTURES:
        return None
    image = observation.get("image") if isinstance(observation, dict) else None
    if image is None and env.unwrapped.render_mode == "rgb_array":
        image = env.unwrapped.render()
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        return None
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()


def _game_form(record: Mapping[str, Any], config: Mapping[str, Any]) -> Form:
    """Return a game of a tournament, with what each seat saw, played again from its seed and actions.

    Beside the turns of all seats, ``events`` tells in order which line was told to whom (``to``, ``text``), which turn
    was taken (``turn``), and what was earned (``rewards``).

    Args:
        record: The game's line.
        config: The settings of the tournament, where they are known.
    """
    form = _told_form(record, config)
    try:
        reason = _play_game(form, record, config)
    except (TurngymError, ValueError, TypeError, KeyError, IndexError) as error:
        reason = str(error)
    return _told_alone(record, config, reason) if reason else form


def _told_alone(record: Mapping[str, Any], config: Mapping[str, Any], reason: str) -> Form:
    """Return a game of which no more is known than its line tells, and why."""
    form = _told_form(record, config)
    form["notes"].append(f"What each seat saw is missing, for the game cannot be played again: {reason}")
    form["events"] = [{"turn": index} for index in range(len(form["turns"]))]
    return form


def _told_form(record: Mapping[str, Any], config: Mapping[str, Any]) -> Form:
    known = {**record, "options": config.get("options")}
    form: Form = {
        "facts": facts_of(known),
        "notes": [],
        "fault": text(record.get("fault")),
        "seats": _seats(record),
        "turns": [_game_turn(action) for action in items(record.get("actions"))],
        "events": [],
        "final": {},
        "replay": None,
    }
    form["facts"] += [[f"metric {name}", text(value)] for name, value in mapping(record.get("metrics")).items()]
    return form


def _game_turn(action: Any) -> Form:
    seat, said = action if isinstance(action, list) and len(action) == 2 else (None, action)
    is_seat = isinstance(seat, int) and not isinstance(seat, bool)
    return {"seat": seat if is_seat else -1, "action": text(said), "reward": None, "more": []}


def _seats(record: Mapping[str, Any]) -> list[Form]:
    """Return who sat where, and what became of them."""
    winners, counts = items(record.get("winners")), mapping(record.get("seats"))
    return [
        {
            "name": text(name),
            "player": text(player),
            "role": text(mapping(record.get("roles")).get(name)),
            "team": text(mapping(record.get("teams")).get(name)),
            "return": number(mapping(record.get("returns")).get(name)),
            "score": number(mapping(record.get("scores")).get(name)),
            "won": name in winners,
            "counts": [[text(key), text(value)] for key, value in mapping(counts.get(name)).items()],
            "instructions": "",
        }
        for name, player in mapping(record.get("seat_map")).items()
    ]


def _play_game(form: Form, record: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Fill in what was told and seen; return why that is not possible, empty if it was."""
    from turngym.envs.multiagent.registration import game_refusal, make_game
    from turngym.envs.multiagent.table import Table

    env, seed = record.get("env"), record.get("seed")
    options = mapping(config.get("options"))
    if reason := game_refusal(env, options):
        return reason
    assert isinstance(env, str)
    if isinstance(seed, bool) or not isinstance(seed, int):
        return "its seed is not known."
    with closing_quietly(Table(make_game(env, **options))) as table:
        return _play_at(table, form, record, seed)


def _play_at(table: Any, form: Form, record: Mapping[str, Any], seed: int) -> str:
    from turngym.envs.multiagent.hosted import begin_game
    from turngym.envs.multiagent.records import transcript_sha256

    begin_game(table, seed)
    if len(form["seats"]) != table.game.num_seats:
        return f"it has {table.game.num_seats} seats, but {len(form['seats'])} were recorded."
    for seat, each in enumerate(form["seats"]):
        each["instructions"] = table.views[seat].instructions
    told = 0
    for index, turn in enumerate(form["turns"][:MOST_TURNS]):
        told = _tell(form, table, told)
        turn["seen"] = table.views[turn["seat"]].observation
        turn["phase"] = table.views[turn["seat"]].phase
        answer = table.answer(turn["seat"], turn["action"])
        form["events"].append({"turn": index})
        if any(answer.rewards):
            form["events"].append({"rewards": list(map(float, answer.rewards))})
            turn["reward"] = float(answer.rewards[turn["seat"]])
    _tell(form, table, told)
    if table.is_over and record.get("transcript_sha256") not in (None, "", transcript_sha256(table)):
        form["notes"].append("The rules installed here tell another story than was recorded: the hashes differ.")
    return ""


def _tell(form: Form, table: Any, start: int) -> int:
    form["events"] += [{"to": list(to), "text": said} for to, said in table.log[start:]]
    return len(table.log)
