"""Pairs of answers as JSON Lines for trainers of preferences, such as TRL's ``DPOTrainer``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from turngym.benchmarks.exports import EXPORTS, digest
from turngym.benchmarks.exports.conversations import conversations, write_jsonl
from turngym.benchmarks.exports.source import Content, Source
from turngym.errors import ConfigError

_LEAST = 1e-9


@EXPORTS.register("preference")
def export_preference(source: Source, out: Path) -> list[Path]:
    """Write a better and a worse answer to each prompt that several episodes of one task share.

    Args:
        source: Folder of an evaluation or a training run.
        out: A file that ends with ``.jsonl``.

    Raises:
        ConfigError: It ends otherwise, there is no pair, or solved episodes only are asked for.
    """
    if source.success:
        raise ConfigError("a pair needs a worse episode too: leave out --success (success in Python).")
    tasks: dict[Any, list[Content]] = defaultdict(list)
    for each in conversations(source):
        if each["return"] is not None:
            tasks[_task(each)].append(each)
    pairs = [pair for episodes in tasks.values() for pair in pairs_of(episodes)]
    if not pairs:
        raise ConfigError(
            f"{source.folder} has no pair: no two episodes of one task differ in their return and in an answer to the "
            "same prompt. Play each task several times: turngym eval ... --repeats 8."
        )
    return write_jsonl(iter(pairs), out)


def _task(episode: Content) -> tuple[str, str, int]:
    """Return what the episodes of a task share; an attempt is the last part of an evaluation's id."""
    label = episode["id"].rpartition(":")[0] if episode["id"].count(":") > 1 else ""
    return label, episode["env"], episode["seed"]


def pairs_of(episodes: Sequence[Content]) -> Iterator[Content]:
    """Yield the best and the worst answer to each prompt that episodes of one task share, by mean return after them.

    A pair has ``prompt``, ``chosen`` and ``rejected``, lists of messages of which the last two hold one answer each, so
    that no text of the environment is trained on; ``margin``, the difference of the mean returns; ``episodes``, the
    number of episodes with each; and ``env`` and ``seed`` of the task.

    >>> def played(answer, total):
    ...     messages = [{"role": "user", "content": "Go?"}, {"role": "assistant", "content": answer}]
    ...     return {"env": "door", "seed": 1, "return": total, "messages": messages}
    >>> [pair] = pairs_of([played("yes", 1.0), played("no", 0.0), played("yes", 0.5)])
    >>> pair["chosen"][0]["content"], pair["rejected"][0]["content"], pair["margin"], pair["episodes"]
    ('yes', 'no', 0.75, [2, 1])
    """
    answers: dict[str, dict[str, list[float]]] = {}
    prompts: dict[str, tuple[list[Content], int]] = {}
    for episode in episodes:
        key, images = "", iter(episode.get("images", ()))
        for place, message in enumerate(episode["messages"]):
            if message["role"] == "assistant":
                key = digest([key, *next(images, ())])  # the same text with another image is another prompt
                prompts[key] = episode["messages"], place
                answers.setdefault(key, {}).setdefault(message["content"], []).append(episode["return"])
            key = digest([key, message])
    for key, found in answers.items():
        messages, place = prompts[key]
        order = sorted(found, key=lambda answer: (fmean(found[answer]), len(found[answer]), answer))
        worst, best = order[0], order[-1]
        margin = fmean(found[best]) - fmean(found[worst])
        if margin > _LEAST * max(map(abs, (*found[best], *found[worst]))):
            yield {
                "prompt": messages[:place],
                "chosen": [{"role": "assistant", "content": best}],
                "rejected": [{"role": "assistant", "content": worst}],
                "margin": margin,
                "episodes": [len(found[best]), len(found[worst])],
                "env": episodes[0]["env"],
                "seed": episodes[0]["seed"],
            }
