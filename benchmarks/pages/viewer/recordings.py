"""Episodes that the wrapper ``record`` wrote, a line for each turn: found in their file, and in the viewer's form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turngym.benchmarks.pages.viewer.forms import Form, facts_of, replay_of, seen_of
from turngym.benchmarks.pages.viewer.jsonl import Broken, Place, each_line, items, mapping, number, parsed, text
from turngym.benchmarks.pages.viewer.summaries import BROKEN, Summary, trace_of

_SHOWN = ("success", "score", "progress", "anchor", "legal_actions", "fault")


class _Open:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.end = place.start + place.length
        self.header: dict[str, Any] = {}
        self.actions: list[Any] = []
        self.returns = 0.0
        self.invalid = self.broken = 0
        self.info: dict[str, Any] = {}
        self.is_complete = False
        self.problem = ""

    def add(self, record: dict[str, Any]) -> None:
        kind = record.get("kind")
        if kind == "episode":
            self.header = record
        elif kind == "turn":
            self.actions.append(record.get("action"))
            self.returns += number(record.get("reward")) or 0.0
            self.info = mapping(record.get("info"))
            self.invalid += self.info.get("action_is_valid") is False
        elif kind == "end":
            self.is_complete = record.get("complete") is True

    def summary(self, index: int, file: int, name: str) -> Summary:
        success = self.info.get("success")
        place = Place(self.place.start, self.end - self.place.start, self.place.line)
        is_lost = not self.header and self.broken
        return Summary(
            index,
            file,
            place,
            name=name,
            env=text(self.header.get("env_id"))[:200],
            seed=text(self.header.get("seed")),
            success=success if success in (0, 1) and isinstance(success, int) else -1,
            score=number(self.info.get("score")),
            returns=self.returns,
            turns=len(self.actions),
            invalid=self.invalid,
            status=BROKEN if is_lost else "ok" if self.is_complete else "cut",
            fault=self.problem or text(self.info.get("fault"))[:200],
            trace=trace_of(self.actions),
        )


def scan(path: Path, file: int, index: int, name: str) -> Iterator[Summary]:
    """Yield the episodes of a recorded file; one without an end has the status ``cut``.

    Args:
        path: The file.
        file: Its number.
        index: Position of its first episode in the list.
        name: Name of its episodes.
    """
    now: _Open | None = None
    for place, line in each_line(path):
        try:
            record = parsed(line, place.line)
        except Broken as error:
            now = now or _Open(place)
            now.broken += 1
            now.problem = now.problem or str(error)
            now.end = place.start + place.length
            continue
        if now is not None and record.get("kind") == "episode":  # the one before has no end
            yield now.summary(index, file, name)
            index, now = index + 1, None
        now = now or _Open(place)
        now.end = place.start + place.length
        now.add(record)
        if record.get("kind") == "end":
            yield now.summary(index, file, name)
            index, now = index + 1, None
    if now is not None:
        yield now.summary(index, file, name)


def recording_form(content: bytes, first_line: int) -> Form:
    """Return an episode from its lines; a line that cannot be read leaves a note.

    Args:
        content: The lines.
        first_line: Number of the first one in its file.
    """
    header: dict[str, Any] = {}
    turns: list[Form] = []
    notes: list[str] = []
    before: Form = {}
    is_over = False
    for offset, line in enumerate(content.removesuffix(b"\n").split(b"\n")):
        try:
            record = parsed(line + b"\n", first_line + offset)
        except Broken as error:
            notes.append(f"{error} What was in it is missing here.")
            before = {}
            continue
        kind, info = record.get("kind"), mapping(record.get("info"))
        if kind == "episode":
            header = record
        elif kind == "reset":
            before = seen_of(record.get("observation"))
        elif kind == "turn":
            turns.append({**before, **_turn(record, info)})
            before = seen_of(record.get("observation"))
        elif kind == "end":
            is_over = True
            if record.get("complete") is not True:
                notes.append("The episode was interrupted before its end.")
    if not is_over:
        notes.append("The episode has no end: writing was stopped.")
    return {
        "facts": _header_facts(header),
        "notes": notes,
        "fault": "",
        "turns": turns,
        "final": before,
        "replay": _replay(header, [turn["action"] for turn in turns]),
    }


def _turn(record: dict[str, Any], info: dict[str, Any]) -> Form:
    flags = [name for name in ("terminated", "truncated") if record.get(name) is True]
    form: Form = {"action": text(record.get("action")), "reward": number(record.get("reward"))}
    if isinstance(info.get("action_is_valid"), bool):
        form["valid"] = info["action_is_valid"]
    form["more"] = [[name, "yes"] for name in flags]
    form["more"] += [[name, text(info[name])] for name in _SHOWN if info.get(name) not in (None, "", [])]
    form["more"] += [[text(key), text(info[key])] for key in sorted(info) if key not in {*_SHOWN, "action_is_valid"}]
    return form


def _header_facts(header: dict[str, Any]) -> list[list[str]]:
    known = {**header, "env": header.get("env_id")}
    wrappers = [text(mapping(each).get("name")) for each in items(header.get("wrappers"))]
    facts = facts_of({"env": known["env"], "seed": known.get("seed"), "wrappers": ", ".join(wrappers)})
    facts += [["options", text(header["settings"])]] if header.get("settings") else []
    facts += [["options of the reset", text(header["options"])]] if header.get("options") else []
    return facts


def _replay(header: dict[str, Any], actions: list[str]) -> Form | None:
    """Return what the episode can be played again from; the header tells also of snapshots and wrappers."""
    seed = header.get("seed")
    known = {"env": header.get("env_id"), "seed": 0 if seed is None else seed, "options": header.get("settings")}
    found = replay_of(known, actions)
    if found is None:
        return None
    return {**found, "header": header, "command": "" if seed is None or header.get("options") else found["command"]}
