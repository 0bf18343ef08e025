"""Episodes as conversations, of an evaluation or a training run: rules, observations, completions, rewards."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from turngym.agents.prompt_text import PromptConfig, system_text
from turngym.agents.recordings.shapes import are_texts
from turngym.agents.recordings.submission import key_of, load_submission
from turngym.benchmarks.exports.source import Content, Source, plain, shown
from turngym.errors import ConfigError
from turngym.storage.bounded import read_json, read_lines
from turngym.wrappers.actions.action_format import FORMATS

_SAMPLES, _METRICS = "samples", "metrics.jsonl"
_FAULTY = ("env_error", "agent_error")


def conversations(source: Source) -> Iterator[Content]:
    """Yield the episodes of a folder that were played to their end; of those, only solved ones where asked for.

    A conversation has ``id``, ``env``, ``seed``, ``success``, ``score`` and ``return``; ``messages`` (the rules as
    ``system``, observations as ``user``, completions as ``assistant``); and one entry for each completion in
    ``rewards``, ``valid`` and ``advantages``, those of its tokens, which is null where they are not known. Where a
    model saw images, ``images`` has their hashes for each completion: records hold no images.

    Raises:
        ConfigError: The folder holds no episodes with their turns, or damaged ones.
    """
    is_run = any((source.folder / name).exists() for name in (_SAMPLES, _METRICS))
    count = 0
    rows, settings = _of_run(source.folder) if is_run else _of_evaluation(source.folder)
    for id, row, transcript in rows:
        if row["status"] in _FAULTY or not transcript["turns"] or (source.success and not row["success"]):
            continue
        count += 1
        yield _conversation(id, row, transcript, settings)
    if not count:
        wanted = "solved episode" if source.success else "episode with turns"
        raise ConfigError(
            f"{source.folder} has no {wanted}: pass a folder of `turngym eval ... --out FOLDER`, or of a training run "
            f"with evaluations (--evaluation.every){' or leave out --success' if source.success else ''}."
        )


_Rows: TypeAlias = Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]
"""Id, record and transcript of each episode."""


def _of_evaluation(folder: Path) -> tuple[_Rows, Mapping[str, Any]]:
    """Return the episodes, and the settings with which a model was asked."""
    submission = load_submission(folder)
    told = {key_of(each): each for each in submission.transcripts or ()}
    rows = (
        (f"{row['label']}:{row['task']}:{row['attempt']}", row, told[key_of(row)])
        for row in submission.episodes
        if key_of(row) in told
    )
    return rows, submission.config["sampling"]


def _of_run(folder: Path) -> tuple[_Rows, Mapping[str, Any]]:
    """Return the episodes that were kept, and the settings with which the policy was asked."""
    try:
        settings = read_json(folder / "config.json").get("rollout") or {}
    except FileNotFoundError:
        settings = {}
    return _kept(folder), settings


def _kept(folder: Path) -> _Rows:
    for file in sorted((folder / _SAMPLES).glob("*.jsonl")):
        try:
            rows = read_lines(file)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file} cannot be read: {error}.") from error
        for number, row in enumerate(rows):
            yield f"{file.stem}:{number}", row, row


def _conversation(
    id: str, row: Mapping[str, Any], transcript: Mapping[str, Any], settings: Mapping[str, Any]
) -> Content:
    turns: Sequence[Mapping[str, Any]] = transcript["turns"]
    prompt, named = settings.get("prompt") or {}, str(settings.get("format"))
    sentence = FORMATS[named].sentence if prompt and named in FORMATS else _answer_format(turns)
    rules = system_text(PromptConfig.build("the prompt", prompt), plain(transcript.get("instructions") or ""), sentence)
    images = [turn.get("images", []) for turn in turns]
    if not all(map(are_texts, images)):
        raise ConfigError(f"the episode {plain(id)} is damaged: images of a turn must be a list of strings.")
    messages = [{"role": "system", "content": rules}] if rules else []
    for turn in turns:
        messages.append({"role": "user", "content": shown(turn["observation"])})
        messages.append({"role": "assistant", "content": plain(turn["completion"] or turn["action"])})
    return {
        "id": plain(id),
        "env": plain(row["env"]),
        "seed": int(row["seed"]),
        "success": bool(row["success"]),
        "score": _number(row["score"]),
        "return": _number(row["returns"]),
        "messages": messages,
        "rewards": [float(turn["reward"]) for turn in turns],
        "valid": [bool(turn["action_is_valid"]) for turn in turns],
        "advantages": _advantages(turns),
        **({"images": images} if any(images) else {}),
    }


def _answer_format(turns: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence of the format that marks actions in completions; empty if none does."""
    texts = [(turn["completion"], turn["action"]) for turn in turns]
    marking = (each for name, each in FORMATS.items() if name != "plain")
    used = (each for each in marking if any(text != action and each.read(text) == action for text, action in texts))
    return next((each.sentence for each in used), "")


def _advantages(turns: Sequence[Mapping[str, Any]]) -> list[list[float]] | None:
    if not all("advantages" in turn for turn in turns):
        return None
    return [[float(value) for value in turn["advantages"]] for turn in turns]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


@contextmanager
def replacing(out: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file under a temporary name, and rename it once it is complete; a failure leaves what was there."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with temporary.open(mode, encoding=None if "b" in mode else "utf8") as file:
            yield file
        temporary.replace(out)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_jsonl(rows: Iterator[Content], out: Path) -> list[Path]:
    """Write rows as JSON Lines, one at a time.

    Raises:
        ConfigError: The file has another ending.
    """
    if out.suffix != ".jsonl":
        raise ConfigError(f"the export is a file that ends with .jsonl, got {str(out)!r}.")
    with replacing(out) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    return [out]
