"""Every argument and option that takes a path or a name, of every command, with what it cannot use.

The options come from the parsers' own classes, so that new ones are covered by themselves: a new command needs a line
in ``command_lines.py``, and a new option that takes any text or path at all says so in :data:`ACCEPTED`.
"""

from __future__ import annotations

import io
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from command_lines import EVALUATION, HANOI, LINES, RUN, Word, line, words_of

from turngym.__main__ import COMMANDS, main
from turngym.trainers.loop.trainer import Trainer

LONG = "x" * 300
PATHS = ["", "zzz", "empty", "text", "folder", "nonsense", "dangling", "empty/below", LONG, "/proc/self/mem"]
NAMES = [*PATHS, "zzz:zzz", "zzz.py:Zzz", "empty.py:Zzz", "hf:empty", "hf:folder", "hf:dangling", "=", "zzz=zzz"]
ANY = frozenset(NAMES)
ANY_TEXTS = ["", "zzz", "empty.py:Zzz", "hf:folder", "zzz=zzz", LONG, "/proc/self/mem"]
"""One of each kind, for options that take any text and look up none."""
NEW_FOLDER = frozenset(["zzz", "folder"])
"""An empty folder is as good as none."""

_WORDS = frozenset(["zzz", "empty", "text", "folder", "nonsense", "dangling"])
ACCEPTED: Mapping[tuple[str, str], tuple[str, frozenset[str]]] = {
    ("play", "from"): ("the start of the episode", frozenset([""])),
    ("play", "save"): ("a new file, also behind a link", frozenset(["zzz", "dangling"])),
    ("new-env", "folder"): ("files are added to it", frozenset(["", "zzz", "folder", "nonsense"])),
    ("launch", "out"): ("a new file, also behind a link", frozenset(["zzz", "dangling"])),
    ("launch", "setup"): ("any line of shell", ANY),
    ("launch", "image"): ("any name", ANY),
    ("launch", "volume"): ("none", frozenset([""])),
    ("launch", "gpu"): ("the cluster's name", _WORDS | {""}),
    ("launch", "name"): ("a name of a job", _WORDS),
    ("eval", "from"): ("the starts of the episodes", frozenset([""])),
    ("eval", "out"): ("a new folder", NEW_FOLDER),
    ("check", "out"): ("a page is written over", frozenset(["zzz", "empty", "text", "dangling"])),
    ("export-tasks", "out"): ("folders are added to it", frozenset(["", "zzz", "folder", "nonsense"])),
    ("rescore", "judge"): ("that of the evaluation", frozenset([""])),
    ("rescore", "verifier"): ("that of the evaluation", frozenset([""])),
    ("rescore", "out"): ("a new folder", NEW_FOLDER),
    ("view", "out"): ("a new file, also behind a link", frozenset(["zzz", "dangling"])),
    ("view", "task"): ("all tasks", frozenset([""])),
    ("leaderboard", "folder"): ("the folder that holds the evaluation", frozenset([""])),
    ("leaderboard", "out"): ("a page is written over", frozenset(["zzz", "empty", "text", "dangling"])),
    ("leaderboard", "title"): ("any text", ANY),
    ("tournament", "anchor"): ("none", frozenset([""])),
    ("tournament", "out"): ("a new folder", NEW_FOLDER),
    ("arena", "folder"): ("a new folder", NEW_FOLDER),
    ("solve", "out"): ("a new file, also behind a link", frozenset(["zzz", "dangling"])),
    ("serve-search", "token"): ("any text", ANY),
    ("serve-env", "token"): ("any text", ANY),
    ("serve-model", "token"): ("any text", ANY),
    ("serve-model", "weights-folder"): ("an existing folder", frozenset(["", "folder", "nonsense"])),
    ("mcp", "token"): ("any text", ANY),
    ("mcp", "records"): ("lines are added to a file", frozenset(["zzz", "empty", "text", "dangling"])),
    ("gateway", "key"): ("any text", ANY),
    ("gateway", "records"): ("a folder is made", NEW_FOLDER),
    ("report", "out"): ("a page is written over", frozenset(["zzz", "empty", "text", "dangling"])),
    ("study", "plan"): ("a folder without plans", frozenset(["", "folder", "nonsense"])),
    ("eval", "agent-command"): ("the agent itself", frozenset([""])),
    ("train", "rollout.served.folder"): ("a folder of the run's own", frozenset([""])),
    ("train", "rollout.served.key-variable"): ("the usual one", frozenset([""])),
    ("train", "rollout.served.python"): ("this one", frozenset([""])),
    ("train", "rollout.ray.address"): ("a cluster of one's own", frozenset([""])),
    ("train", "start"): ("resets", frozenset([""])),
    ("train", "warmup.log"): ("demonstrations of the solver", frozenset([""])),
    ("train", "agent.command"): ("the built-in agent", frozenset([""])),
    ("train", "agent.package"): ("none", frozenset([""])),
    ("train", "agent.python"): ("this one", frozenset([""])),
    ("train", "agent.tasks"): ("the environment's own tasks", frozenset([""])),
    ("train", "curriculum"): ("a new instance per group", frozenset([""])),
    ("train", "reward-model"): ("none", frozenset([""])),
    ("train", "teacher"): ("none", frozenset([""])),
    ("train", "rollout.prompt.system"): ("any text", ANY),
    ("train", "rollout.prompt.template"): ("variables of the chat template, which has its own", frozenset(["zzz=zzz"])),
    ("train", "rollout.prompt.chat-template"): ("that of the model", frozenset([""])),
    ("train", "run-dir"): ("a new folder", NEW_FOLDER),
    ("export-model", "out"): ("a new folder", NEW_FOLDER),
    ("learn-experiences", "out"): ("a new folder", NEW_FOLDER),
    ("learn-experiences", "reflector"): ("the player's model", frozenset([""])),
    ("label-progress", "out"): ("a new folder", NEW_FOLDER),
    ("fit-reward", "out"): ("a new folder", NEW_FOLDER),
}
"""Command and option -> why values that look wrong are right there, and which ones."""
_SERVED = "openai:zzz@http://127.0.0.1:9/v1"
_MODEL: Mapping[str, str | None] = {"agent": _SERVED}
_GAME: Mapping[str, str | None] = {"env": "turngym/KuhnPoker-v0", "env-options": None}
CONTEXT: Mapping[tuple[str, str], Mapping[str, str | tuple[str, ...] | None]] = {
    ("play", "server"): _MODEL,
    ("eval", "server"): _MODEL,
    ("arena", "server"): {"players": ("random", _SERVED)},
    ("tournament", "server"): {"players": ("random", _SERVED)},
    ("mcp", "token"): {"port": "0"},
    ("mcp", "host"): {"port": "0"},
    ("train", "lora-targets"): {"lora-rank": "2"},
    ("train", "rollout.format"): {"model": None, "warmup.demonstrations": "0"},
    ("train", "self-play.opponents"): _GAME,
    ("train", "self-play.demonstrator"): _GAME,
    ("train", "self-play.matching"): {**_GAME, "self-play.opponents": "random"},
    ("train", "self-play.matching-decay"): _GAME,
    ("train", "self-play.evaluation-opponents"): _GAME,
}
"""Command and option -> what else stands in a line in which the option counts."""
CHECKED = {("verify", "folder", "nonsense")}
"""Values that a command checks and rejects: that is what it is for."""
SMALL_RUN = (
    "--env turngym/FrozenLake-v0 --env-options max_turns=3 --iterations 1 --no-control --max-seconds 0 "
    "--embedded.hidden-size 16 --embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 300 "
    "--warmup.demonstrations 2 --warmup.epochs 1 --rollout.groups 1 --rollout.group-size 2 "
    "--evaluation.episodes 1 --evaluation.every 0"
)
DONE, REJECTED, USAGE, INTERRUPTED = 0, 1, 2, 130


def _listen(self: socket.socket, *_: Any) -> NoReturn:
    self.close()
    raise KeyboardInterrupt


def _begin(*_: Any, **__: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated") / EVALUATION
    words = ["eval", HANOI, "--agent", "expert", "--episodes", "4", "--option", "discs=2", "--out", str(folder)]
    assert main(words) == DONE
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / RUN
    assert main(["train", *SMALL_RUN.split(), "--run-dir", str(folder)]) == DONE
    return folder


@pytest.fixture
def stopped_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop servers and training as Ctrl-C would, where they start."""
    monkeypatch.setattr(socket.socket, "listen", _listen)
    monkeypatch.setattr(Trainer, "run", _begin)
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.fixture
def place(evaluated: Path, finished: Path, tmp_path: Path, stopped_at_start: None) -> Path:
    """Create a working directory with an evaluation and a run."""
    shutil.copytree(evaluated, tmp_path / EVALUATION)
    shutil.copytree(finished, tmp_path / RUN)
    return tmp_path


def _fill(folder: Path) -> None:
    for name, content in {"empty": "", "empty.py": "", "text": "hello\n"}.items():
        (folder / name).write_text(content)
    (folder / "folder").mkdir()
    (folder / "nonsense").mkdir()
    (folder / "nonsense" / "config.json").write_text("[")
    (folder / "nonsense" / "metrics.jsonl").write_text("zzz\n")
    (folder / "dangling").symlink_to("nowhere")


def _state(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of modification of everything in a folder."""
    found = [(path, path.lstat()) for path in sorted(folder.rglob("*"))]
    return [(str(path), status.st_size, status.st_mtime_ns) for path, status in found]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_line_of_each_command_works(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    status, err = main(line(command)), capfd.readouterr().err
    if "which is not installed" in err:
        pytest.skip(err)
    served = ("serve-env", "serve-search", "serve-model", "gateway", "train")
    assert status == (INTERRUPTED if command in served else DONE), err


def _texts() -> list[Any]:
    return [
        pytest.param(command, word, number, id=f"{command} {word.name}")
        for command in COMMANDS
        for number, word in enumerate(words_of(command))
        if word.is_path or word.is_text
    ]


def _values(command: str, word: Word, number: int, accepted: frozenset[str]) -> list[str]:
    """Return what an option is given: of what is accepted the first and the last, for ``train`` a third of the rest."""
    values = PATHS if word.is_path else ANY_TEXTS if accepted == ANY else NAMES
    right, wrong = ([each for each in values if (each in accepted) == is_right] for is_right in (True, False))
    return [*right[:1], *right[1:][-1:], *(wrong[number % 3 :: 3] if command == "train" else wrong)]


@pytest.mark.parametrize(("command", "word", "number"), _texts())
def test_what_cannot_be_used_is_told_in_a_sentence(
    command: str,
    word: Word,
    number: int,
    evaluated: Path,
    finished: Path,
    tmp_path: Path,
    stopped_at_start: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if command == "serve-env":
        pytest.importorskip("websockets")  # without it, every line is refused
    _, accepted = ACCEPTED.get((command, word.name), ("", frozenset()))
    wrong = []
    used = [each for each in (evaluated, finished) if any(each.name in given for given in LINES[command].values())]
    folder, before = tmp_path, None
    for value in _values(command, word, number, accepted):
        if before is None or _state(folder) != before:  # the value before this one was accepted and something written
            folder = Path(tempfile.mkdtemp(dir=tmp_path))
            _fill(folder)
            for each in used:
                shutil.copytree(each, folder / each.name)
            before = _state(folder)
            monkeypatch.chdir(folder)
        status = main(line(command, {**CONTEXT.get((command, word.name), {}), word.name: value}))
        err = capfd.readouterr().err
        assert "Traceback" not in err, err
        if value in accepted:
            wanted = {DONE, INTERRUPTED}
        else:
            wanted = {REJECTED if (command, word.name, value) in CHECKED else USAGE}
        if status not in wanted or (status == USAGE and not 1 <= len(err.strip().splitlines()) <= 3):
            wrong.append(f"{value!r}: exit code {status}: {err}")
    assert not wrong, "refuse these values, or say in ACCEPTED why they are right:\n" + "\n".join(wrong)


def test_what_is_declared_is_there() -> None:
    known = {(command, word.name) for command in COMMANDS for word in words_of(command)}
    assert set(LINES) == set(COMMANDS)
    assert known >= {*ACCEPTED, *CONTEXT, *(each[:2] for each in CHECKED)}
    assert all(reason for reason, _ in ACCEPTED.values())
    assert len(_texts()) > 70


@pytest.mark.parametrize("value", ["zzz", "empty", "folder", "text", "nonsense", "dangling", "/proc/self/mem"])
@pytest.mark.parametrize(
    ("command", "name", "form"),
    [
        ("train", "reward-model", "spa:path={}"),
        ("eval", "wrapper", "recipe_progress:path={}"),
        ("eval", "prompt", "template_file={}"),
        ("eval", "verifier", "reward_model:{}"),
        ("fit-reward", "option", "features=model:{}"),
    ],
)
def test_paths_inside_of_an_option_are_told_in_a_sentence(
    command: str,
    name: str,
    form: str,
    value: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    _fill(place)
    status = main(line(command, {**CONTEXT.get((command, name), {}), name: form.format(value)}))
    err = capfd.readouterr().err
    assert status == USAGE and "Traceback" not in err and 1 <= len(err.strip().splitlines()) <= 3, err


def test_a_model_of_the_hub_is_refused_at_once_where_the_hub_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    status, err = main(line("train", {"model": "zzz"})), capfd.readouterr().err
    assert status == USAGE and len(err.splitlines()) == 1, err
    assert "there is no folder zzz, and the hub cannot be reached" in err
