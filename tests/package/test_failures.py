"""What the command line says where something goes wrong: exit code, one to three lines, no traceback, a way out."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warm

from turngym.__main__ import COMMANDS, main
from turngym.benchmarks.cli.options.usage import sentence
from turngym.errors import TurngymError
from turngym.terminal.failures import BUG, USAGE, explain

HANOI, KUHN = "turngym/TowerOfHanoi-v0", "turngym/KuhnPoker-v0"
WRITING = {
    "eval": ["eval", HANOI, "--agent", "random", "--episodes", "1", "--option", "discs=2", "--out"],
    "tournament": ["tournament", KUHN, "--blocks", "1", "--out"],
    "new-env": ["new-env", "LockPicker", "--folder"],
    "new-env --package": ["new-env", "LockPicker", "--package", "--folder"],
    "train": ["train", "--max-seconds", "1", "--run-dir"],
    "play": ["play", HANOI, "--agent", "random", "--option", "discs=2", "--save"],
    "leaderboard": ["leaderboard", "{evaluation}", "--out"],
    "report": ["report", "{evaluation}", "--out"],
    "view": ["view", "{evaluation}", "--out"],
}
"""Commands that write, up to the path."""


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "evaluation"
    assert main([*WRITING["eval"], str(folder)]) == 0
    return folder


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit status and what went to the error stream."""
    capsys.readouterr()
    status = main(words)
    return status, capsys.readouterr().err


def assert_short(status: int, err: str) -> None:
    assert status == USAGE, err
    assert "Traceback" not in err and 1 <= len(err.strip().splitlines()) <= 3, err
    assert "error: " in err, err


@pytest.mark.parametrize("command", WRITING)
def test_a_path_that_cannot_be_written_is_named(
    command: str, evaluation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    words = [word.format(evaluation=evaluation) for word in WRITING[command]]
    for path in ("/proc/foo", str(tmp_path / "file" / "below"), str(tmp_path / ("x" * 300))):
        status, err = told([*words, path], capsys)
        assert_short(status, err)
        assert path[:100] in err or Path(path).parent.as_posix() in err, err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give its rights up")
@pytest.mark.parametrize("command", ["eval", "new-env", "leaderboard"])
def test_no_permission_is_told(command: str, evaluation: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o755)
    for folder in (evaluation, *evaluation.parents):
        if os.stat(folder).st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    words = [word.format(evaluation=evaluation) for word in WRITING[command]]
    code = "import os, sys; from turngym.__main__ import main; where = sys.argv.pop(); assert not main(sys.argv[1:]); "
    code += "print('---', file=sys.stderr); os.setuid(65534); sys.exit(main([*sys.argv[1:-1], where]))"
    # The first run loads all modules, which that user may not be allowed to read.
    found = warm.run("-c", code, *words, str(tmp_path / "open"), str(closed / "new"))
    err = found.stderr.rpartition("---")[2]
    assert_short(found.returncode, err)
    assert "permission denied" in err and str(closed) in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told(evaluation: Path) -> None:
    script = 'exec "$0" -m turngym list suites --json > /dev/full'
    found = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False)
    assert_short(found.returncode, found.stderr)
    assert "no space left on the device: free some space" in found.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--env", "CartPole-v1"], "CartPole-v1 is not a text environment of turngym"),
        (["eval", "CartPole-v1", "--agent", "random"], "CartPole-v1 is not a text environment of turngym"),
        (["train", "--threads", "1000000"], "threads of the run must be a whole number in [0, 1024], got 1000000."),
        (
            ["eval", HANOI, "--agent", "random", "--episods", "3"],
            "unrecognized options: --episods, 3. Did you mean --",
        ),
        (
            ["eval", HANOI, "--agent", "random", "first_legal"],
            "--agent takes one value, got random and first_legal.",
        ),
        (["eval", HANOI, "--agent", "random", "--option", "env_id=x"], "--option cannot set env_id"),
        (["eval"], "missing: TARGET, --agent. `turngym eval --help-all` shows all options."),
        (["eval", HANOI, "--agent"], "Missing value for argument '--agent'. Expected 1 values. `turngym eval --help"),
        (["eval", "--dat", "q", "--agent", "x"], "Unrecognized: --dat. Did you mean --data? `turngym eval --help"),
        (["list", "evnironments"], "component or kind named 'evnironments'. Did you mean 'environments'?"),
        (["train", "--rollout.groups", "many"], "--rollout.groups takes a whole number, got 'many'."),
    ],
)
def test_wrong_words_are_told_in_a_sentence(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, err = told(words, capsys)
    assert_short(status, err)
    assert message in err


def test_an_unexpected_exception_is_a_bug_and_says_so() -> None:
    def inner() -> None:
        print((3).missing)  # type: ignore[attr-defined]

    namespace: dict[str, object] = {}
    exec(compile("def fail():\n    len(3)\n", "<library>", "exec"), namespace)
    with pytest.raises(TypeError) as caught:
        namespace["fail"]()  # type: ignore[operator]
    trace = caught.value.__traceback__
    assert trace is not None
    message, status = explain(caught.value.with_traceback(trace.tb_next), ["eval", "x"])
    assert status == BUG and message.startswith("error: TypeError: ")
    assert message.endswith("This is a bug in turngym: please report it with what `turngym --debug eval ...` prints.")
    with pytest.raises(AttributeError) as own:
        inner()
    message, status = explain(own.value)
    assert status == USAGE and "(3).missing" in message
    assert f"{__file__}, line " in message, "the line of the user's own"


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EISDIR, errno.ENOTDIR, errno.EIO, errno.ELOOP])
def test_an_error_of_the_system_names_the_path_as_it_was_meant(number: int) -> None:
    message, status = explain(OSError(number, os.strerror(number), "runs/.page.html.123.tmp"))
    assert status == USAGE and message.startswith("error: runs/page.html: ") and message.endswith(".")
    assert len(message.splitlines()) == 1


def test_a_deleted_working_folder_is_told(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m turngym list suites'
    found = subprocess.run(
        ["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "Traceback" not in found.stderr and found.returncode in (0, USAGE), found.stderr


@pytest.mark.parametrize(
    "extra", [{"PYTHONIOENCODING": "ascii"}, {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}, {"COLUMNS": "20"}]
)
def test_a_poor_terminal_changes_no_exit_code(extra: dict[str, str], tmp_path: Path) -> None:
    surroundings = {key: value for key, value in os.environ.items() if key != "HOME"} | extra
    code = (
        "import sys; from turngym.__main__ import main\n"
        f"print([main(words) for words in (['list', 'environments'], ['eval', '--help'], ['eval', {'zzzü'!a}])])"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env=surroundings)
    assert found.stdout.splitlines()[-1:] == [b"[0, 0, 2]"] and b"Traceback" not in found.stderr, found.stderr


def test_a_reader_that_has_seen_enough_ends_a_command_quietly() -> None:
    script = '"$0" -m turngym list suites | head -n 1'
    found = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False)
    assert found.returncode == 0 and not found.stderr, found.stderr


def test_what_the_parser_prints_is_put_together() -> None:
    plain = " Unrecognized options\n -----------------\n  Unrecognized options: --episods, 3\n  ---------------\n"
    assert sentence(plain, []) == "unrecognized options: --episods, 3."
    printed = "╭─ Invalid choice ──╮\n│ invalid choice 'x' │\n│ for argument 'y'. │\n│ ────────────────────── │\n"
    assert sentence(printed, []) == "invalid choice 'x' for argument 'y'."


def test_every_command_fails_shortly_on_an_unknown_option(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        status, err = told([command, "--no-such-option", "x"], capsys)
        assert_short(status, err)
    assert issubclass(TurngymError, Exception)
