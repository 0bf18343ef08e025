"""Policies that look for shortcuts in judges instead of doing the task.

They press everything, try every choice one after another and undo what was wrong, or carry everything to where
something is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from turngym.envs.website.page import Page
from turngym.seeding import stream

Policy: TypeAlias = Callable[["Played", str], Iterator[str]]
"""Yields actions in an environment that was just reset; ends where it knows no more."""


class Played:
    """An environment in play.

    Args:
        env: What ``gymnasium.make`` returned.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self.unwrapped = env.unwrapped
        self.legal_actions: tuple[str, ...] = ()

    def play(self, policy: Policy, seed: int) -> tuple[float, bool]:
        """Return score and success of one episode."""
        observation, info = self._env.reset(seed=seed)
        self.legal_actions = info["legal_actions"]
        for action in policy(self, str(observation)):
            _, _, terminated, truncated, info = self._env.step(action)
            self.legal_actions = info["legal_actions"]
            if terminated or truncated:
                break
        return float(info["score"]), info["success"] == 1


def expert(env: Played, observation: str) -> Iterator[str]:
    """Do the task."""
    while True:
        yield env.unwrapped.expert_action()


def at_random(env: Played, observation: str) -> Iterator[str]:
    """Take any legal action."""
    generator = stream("shortcuts", observation)
    while True:
        legal = env.legal_actions
        yield legal[int(generator.integers(len(legal)))]


def first_legal(env: Played, observation: str) -> Iterator[str]:
    """Take the first legal action, always."""
    while True:
        yield env.legal_actions[0]


def press_everything(env: Played, observation: str) -> Iterator[str]:
    """Fill every field with the first quoted words, then press every button of every page that is linked."""
    visited = 0
    while True:
        page: Page = env.unwrapped.session.page
        quoted = re.findall(r'"([^"]+)"', env.unwrapped.goal.text) or ["closed"]
        for piece in page.pieces:
            if piece.kind == "field":
                yield f"fill {piece.number} {quoted[0]}"
        button = next((piece for piece in page.pieces if piece.kind == "button"), None)
        if button is not None:
            yield f"click {button.number}"
        links = [piece for piece in env.unwrapped.session.page.pieces if piece.kind == "link"]
        visited += 1
        yield f"click {links[visited % len(links)].number}"


def _press(env: Played, label: str, text: str) -> Iterator[str]:
    """Enter a text in one entry of the page shown, and send the form that holds it."""
    page: Page = env.unwrapped.session.page
    entry = next(each for each in page.pieces if each.label == label and each.is_entry)
    yield f"{'fill' if entry.kind == 'field' else 'select'} {entry.number} {text}"
    button = next(each for each in page.pieces if each.kind == "button" and each.form == entry.form)
    yield f"click {button.number}"


def try_each_person(env: Played, observation: str) -> Iterator[str]:
    """Assign the issue to one person after another, until one is taken for right."""
    path = next(task.path for task in env.unwrapped.goal.tasks if task.path.endswith("/edit"))
    people = env.unwrapped.store.database.execute("SELECT name FROM person ORDER BY id").fetchall()
    for (name,) in people:
        yield f"goto {path}"
        yield from _press(env, "assignee", name)
        if "over to NAME" in observation:
            yield f"goto {path.removesuffix('/edit')}"
            yield from _press(env, "comment", f"over to {name}")


def try_each_customer(env: Played, observation: str) -> Iterator[str]:
    """Give the tier to one customer after another, and take it back where it is not taken for right."""
    edit = next(task for task in env.unwrapped.goal.tasks if task.path.endswith("/edit"))
    percent = re.findall(r"of (\d+) percent", observation)
    for number, name, tier in env.unwrapped.store.database.execute("SELECT id, name, tier FROM customer").fetchall():
        yield f"goto /customers/{number}/edit"
        yield from _press(env, "tier", edit.fields["tier"])
        if percent:
            yield "goto /coupons/new"
            for label, text in (("code", name), ("percent", percent[0])):
                entry = next(each for each in env.unwrapped.session.page.pieces if each.label == label)
                yield f"fill {entry.number} {text}"
            box = next(each for each in env.unwrapped.session.page.pieces if each.kind == "box")
            yield f"check {box.number}"
            button = next(each for each in env.unwrapped.session.page.pieces if each.kind == "button")
            yield f"click {button.number}"
        yield f"goto /customers/{number}/edit"
        yield from _press(env, "tier", tier)


def carry_everything(env: Played, observation: str) -> Iterator[str]:
    """Carry whatever lies about to a receptacle that the task names, without regard to what is asked for."""
    places = re.findall(r"\b([a-z]+ \d+)", observation)
    task = observation.rsplit("Your task is to:", 1)[1]
    targets = [place for place in places if place.split()[0] in task] or places
    for place in places:
        while True:
            yield f"go to {place}"
            yield f"open {place}"
            take = next((each for each in env.legal_actions if each.startswith("take ")), None)
            if take is None or place in targets:
                break
            yield take
            yield f"go to {targets[0]}"
            yield f"open {targets[0]}"
            thing = re.sub(r"take (.+) from .*", r"\1", take)
            for verb in ("heat", "cool", "clean"):
                yield f"{verb} {thing} with {targets[0]}"
            yield f"move {thing} to {targets[0]}"
