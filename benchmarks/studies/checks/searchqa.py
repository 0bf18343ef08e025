"""What searching is worth in SearchQA: players that know how to read, with fewer and fewer searches.

    python benchmarks/studies/checks/searchqa.py [--write]

Generated questions of the test split, by kind: the oracle; one search for the question as it stands, then the answer
if the passages shown hold all that it takes (``one search``); and nobody's knowledge: the commonest answer to questions
of that kind in the training split (``closed book``). Real multi-hop questions on the corpus of 150,000 passages: what
a perfect reader gets who searches for the sub-questions with the earlier answers filled in (``sub-questions``; where a
set has none: the facts of its evidence in 2WikiMultihopQA, the titles of its passages in HotpotQA) or for the question
as it stands, with 3 or 10 passages. It answers right if it was shown every gold passage, and with the
title found first otherwise. ``answer_shown`` is the share of questions of which an accepted answer stood anywhere in
what was shown, whether or not the reader could tell; questions of yes and no count as not shown.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import track

from turngym.agents.intervals import wilson
from turngym.benchmarks.machine import machine
from turngym.envs.search.answers import contains_answer, normalise
from turngym.envs.search.documents import Document
from turngym.envs.search.env import SearchQA
from turngym.envs.search.protocol import write
from turngym.envs.search.questions import KINDS, Question
from turngym.storage.files import write_json

DATA = Path(__file__).parents[4] / "shared" / "data" / "search"
RESULTS = Path(__file__).parents[2] / "results" / "searchqa.json"
MULTI_HOP = ("musique", "hotpotqa", "2wikimultihopqa")
SIZE = 5000
TURNS = 8
Planned = Callable[[Question], Sequence[str]]
"""Question -> the searches of a player."""


def as_it_stands(question: Question) -> Sequence[str]:
    """Return one search: the question."""
    return (question.text,)


def by_steps(question: Question) -> Sequence[str]:
    """Return the searches that are known to lead to the answer; the question itself where none are."""
    return question.queries or (question.text,)


def closed_book(question: Question) -> Sequence[str]:
    """Return no search."""
    return ()


def search_all(env: SearchQA, searches: Sequence[str]) -> tuple[Document, ...]:
    """Search as planned; returns the passages that were shown, each once."""
    for words in searches[: env.max_turns - 1]:
        env.step(write("search", words, "tags"))
    return env.found_documents()


def finish(env: SearchQA, answer: str) -> tuple[bool, float]:
    """Answer; returns exact match and F1."""
    info = env.step(write("answer", answer, "tags"))[4]
    return info["success"] == 1, float(info["score"])


def row(results: Sequence[tuple[bool, float]]) -> dict[str, Any]:
    """Return the figures of a player."""
    right = sum(is_right for is_right, _ in results)
    low, high = wilson(right, len(results))
    return {
        "questions": len(results),
        "exact_match": round(right / len(results), 4),
        "interval": [round(low, 4), round(high, 4)],
        "f1": round(statistics.mean(score for _, score in results), 4),
    }


def commonest(kind: str) -> str:
    """Return the commonest answer to questions of a kind in the training split."""
    env = SearchQA(kind=kind, size=SIZE, split="train")
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(500):
        env.reset(seed=seed)
        counts[env.question.answers[0]] += 1
    return counts.most_common(1)[0][0]


def generated(kind: str, episodes: int) -> dict[str, Any]:
    """Return the figures of the players on generated questions of a kind, of the test split."""
    env = SearchQA(kind=kind, size=SIZE, split="test")
    guess = commonest(kind)
    seeds: dict[str, int] = {}
    for seed in range(episodes * 10):
        env.reset(seed=seed)
        seeds.setdefault(env.instance, seed)
        if len(seeds) == episodes:
            break
    results: dict[str, list[tuple[bool, float]]] = {"oracle": [], "one search": [], "closed book": []}
    for player, found in results.items():
        for seed in seeds.values():
            env.reset(seed=seed)
            found.append(_play_generated(env, player, guess))
    return {player: row(found) for player, found in results.items()}


def _play_generated(env: SearchQA, player: str, guess: str) -> tuple[bool, float]:
    if player == "oracle":
        info: Mapping[str, Any] = {"success": -1}
        while info["success"] < 0:
            info = env.step(env.expert_action())[4]
        return info["success"] == 1, float(info["score"])
    shown = {document.id for document in search_all(env, as_it_stands(env.question) if player == "one search" else ())}
    knows = bool(shown) and set(env.question.gold) <= shown
    return finish(env, env.question.answers[0] if knows else guess)


READERS: Mapping[str, tuple[Planned, int]] = {
    "sub-questions, 3 passages each": (by_steps, 3),
    "one query, 3 passages": (as_it_stands, 3),
    "one query, 10 passages": (as_it_stands, 10),
    "closed book": (closed_book, 3),
}
"""Player -> its searches, and passages for each."""


def published(name: str, player: str, most: int) -> dict[str, Any]:
    """Return the figures of a player on the questions of a real set that have gold passages."""
    planned, top_k = READERS[player]
    env = SearchQA(name, str(DATA), "wiki", top_k=top_k, max_turns=TURNS, split="test", passage_words=1000)
    results, seen = [], 0
    for task in env.tasks():
        env.reset(options={"task": task})
        question = env.question
        if not question.gold:
            continue
        shown = search_all(env, planned(question))
        plain = [answer for answer in question.answers if normalise(answer) not in ("", "yes", "no")]
        seen += any(contains_answer(document.contents, plain) for document in shown)
        knows = set(question.gold) <= {document.id for document in shown}
        guess = shown[0].title if shown else ""
        results.append(finish(env, question.answers[0] if knows else guess))
        if len(results) == most:
            break
    return {**row(results), "answer_shown": round(seen / len(results), 4)}


def main() -> int:
    """Play and print; write the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--episodes", type=int, default=100, help="generated questions of each kind")
    parser.add_argument("--most", type=int, default=1000, help="real questions of each set")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    arguments = parser.parse_args()
    made = {kind: generated(kind, arguments.episodes) for kind in track(KINDS, "generated questions")}
    for kind, players in made.items():
        print(kind, json.dumps({player: found["exact_match"] for player, found in players.items()}))
    real: dict[str, dict[str, Any]] = {}
    if DATA.is_dir():
        for name in track(MULTI_HOP, "real questions"):
            real[name] = {player: published(name, player, arguments.most) for player in READERS}
            print(name, json.dumps(real[name], indent=1))
    if arguments.write:
        settings = {"size": SIZE, "split": "test", "max_turns": TURNS}
        write_json(RESULTS, {"machine": machine("tantivy"), "settings": settings, "generated": made, "published": real})
    return 0


if __name__ == "__main__":
    sys.exit(main())
