"""What a person can type while playing: a real program on pipes and on a terminal of its own."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import warm
from gymnasium.envs.registration import EnvSpec
from rich.console import Console
from sound_env import Sound

from turngym.benchmarks.cli.options.parsing import make_text_env
from turngym.benchmarks.cli.terminal.play_commands import COMMANDS
from turngym.benchmarks.cli.terminal.play_screen import half_blocks, shrunk
from turngym.benchmarks.cli.terminal.play_session import Session
from turngym.envs.transcript import replay
from turngym.errors import ConfigError, SnapshotUnsupported

GUESS = "turngym/GuessTheNumber-v0"
HANOI = "turngym/TowerOfHanoi-v0"
SUPPORT = Path(__file__).parents[2] / "support"


class NoSnapshots(Sound):
    def snapshot(self) -> bytes:
        raise SnapshotUnsupported("nothing can be saved")


def piped(lines: Sequence[str] | bytes, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Play with these lines on the standard input."""
    text = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode()
    return warm.run("-m", "turngym", "play", *words, env=os.environ | variables, typed=text)


def shown_after(shown: str, line: str) -> str:
    """Return what follows the echo of a line up to the next prompt."""
    return shown.partition(f"> {line}\n")[2].partition("action> ")[0]


def test_every_command_does_what_help_says(tmp_path: Path) -> None:
    path = tmp_path / "sitting.txt"
    lines = [
        ":help",
        ":legal",
        ":hint",
        "A C",
        "A B",
        "nonsense",
        ":undo 2",
        ":look",
        ":rules",
        f":save {path}",
        ":quit",
    ]
    found = piped(lines, HANOI, "--seed", "3")
    shown = found.stdout
    assert found.returncode == 0 and not found.stderr and "\x1b" not in shown
    assert all(f":{name}" in shown_after(shown, ":help") for name in COMMANDS)
    assert shown_after(shown, ":legal").split() == ["A", "B", "A", "C"]
    assert "the expert would say: A C" in shown_after(shown, ":hint")
    assert "(not a valid action)" in shown_after(shown, "nonsense")
    assert "took back 2 turns" in shown_after(shown, ":undo 2") and "turn 2" in shown_after(shown, ":undo 2")
    assert shown_after(shown, ":look").endswith(shown_after(shown, ":undo 2").partition("\n")[2])
    assert "There are three pegs" in shown_after(shown, ":rules")
    assert shown.endswith("left after 1 turns\n")
    text = path.read_text("utf8")
    assert replay(text) == text and text.count("action: ") == 1, "what was taken back is not in it"


def test_after_the_end_one_can_go_back_save_or_begin_again(tmp_path: Path) -> None:
    path = tmp_path / "solved.txt"
    won = ["A C", "A B", "C B", "A C", "B A", "B C", "A C"]
    lines = [*won, "A C", ":hint", ":undo", "A C", f":save {path}", f":save {path}", ":restart", ":next", "quit"]
    shown = piped(lines, HANOI, "--seed", "3").stdout
    assert shown.count("solved after 7 turns: return 1, score 1") == 2
    assert "The episode is over" in shown and "there is nothing to hint at" in shown
    assert f"saved {path}" in shown and f"{path} exists already: pass another name." in shown
    assert "seed 3" in shown_after(shown, ":restart") and "turn 1" in shown_after(shown, ":restart")
    assert "left after 0 turns" in shown
    text = path.read_text("utf8")
    assert replay(text) == text and "success: 1" in text


def test_an_empty_line_or_the_end_of_the_input_leaves_after_the_end() -> None:
    won = ["A C", "A B", "C B", "A C", "B A", "B C", "A C"]
    for lines in (won, [*won, "", "A C"]):
        found = piped(lines, HANOI, "--seed", "3")
        assert found.returncode == 0 and not found.stderr and "left after" not in found.stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (":udno", "no command named :udno. Did you mean ':undo'?"),
        (":h", ":h can be :hint or :help."),
        (":", "no command named :."),
        (":undo", "There is nothing to take back."),
        (":undo x", ":undo takes a whole number, such as :undo 3, got 'x'."),
        (":undo -1", ":undo takes a whole number"),
        (":restart ٣", ":restart takes a whole number"),
        (":hint please", ":hint takes nothing after it, got 'please'."),
        (":save /no/such/folder/file", "cannot be written"),
        ("::legal", "(not a valid action)"),
    ],
)
def test_a_wrong_line_is_answered_and_costs_nothing(
    line: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from turngym.__main__ import main

    lines = iter([line, ":quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    if "folder" in line and os.access("/", os.W_OK):
        monkeypatch.setattr("turngym.benchmarks.cli.terminal.play_session.write_atomic", denied)
    assert main(["play", HANOI, "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert message in shown
    assert f"left after {int(line.startswith('::'))} turns" in shown


def denied(path: Path, text: str) -> None:
    raise PermissionError(13, "Permission denied")


def test_an_environment_without_a_solver_has_no_hints() -> None:
    class NoExpert(Sound):
        def expert_action(self) -> str:
            return super(Sound, self).expert_action()

    session = Session(NoExpert(), NoExpert, 3)
    session.begin()
    with pytest.raises(ConfigError, match="has no solver"):
        session.hint()


@pytest.mark.parametrize("kind", [Sound, NoSnapshots])
def test_taking_back_any_number_of_turns_gives_the_very_state(kind: type[Sound]) -> None:
    """By snapshots, or where there are none by playing again."""
    session = Session(kind(), kind, 5)
    session.begin()
    seen = [(session.observation, dict(session.info), session.total)]
    actions = ["open 60", "nonsense", "open 1", "open 50", "open 2"]
    for action in actions:
        session.take(action)
        seen.append((session.observation, dict(session.info), session.total))
    for count in (1, 2):
        turns = len(session.turns)
        assert session.undo(count) == count
        assert (session.observation, dict(session.info), session.total) == seen[turns - count]
    session.take(actions[2])
    assert session.observation == seen[3][0], "the generator was taken back too"
    assert session.undo(99) == 3 and session.undo() == 0 and session.text == "64 boxes"


def test_an_ended_episode_goes_on_after_a_step_back() -> None:
    session = Session(Sound(), Sound, 5)
    session.begin()
    while not session.is_over:
        session.take(session.hint())
    assert session.info["success"] == 1
    session.undo()
    assert not session.is_over and session.info["success"] == -1
    session.take(session.hint())
    assert session.is_over and session.info["success"] == 1


def test_a_file_of_ones_own_and_odd_bytes_are_played(tmp_path: Path) -> None:
    path = f"{SUPPORT / 'sound_env.py'}:Optional"
    words = ["--option", "prize=ring", "--seed", "1", "--save", str(tmp_path / "a.txt")]
    found = piped(b"\xff\xfe\n\x1b[31m\nopen 3\n", path, *words)
    assert found.returncode == 0 and not found.stderr and "find the ring" in found.stdout
    assert "\x1b" not in found.stdout and found.stdout.count("(not a valid action)") == 2
    assert (tmp_path / "a.txt").read_text("utf8").count("action: ") == 3
    again = piped([], path, *words)
    assert again.returncode == 2 and "exists already: pass another file as --save" in again.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sokoban", "no environment named 'sokoban'. Did you mean 'turngym/Sokoban-v0'? `turngym list` shows all."),
        ("Frozen_Lake-v9", "Did you mean 'turngym/FrozenLake-v0'?"),
        (f"{SUPPORT / 'sound_env.py'}:Soumd", "Did you mean 'Sound'?"),
        (f"{SUPPORT / 'toy_envs.py'}:Picture", "is not a text environment of turngym"),
        ("no/such/file.py:Game", "there is no file"),
    ],
)
def test_a_wrong_name_is_one_helpful_line(
    name: str, message: str, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    import warnings

    from turngym.__main__ import main

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # toy_envs registers its ids a second time
        assert main(["play", name]) == 2
    shown = capsys.readouterr().err
    assert message in shown and shown.startswith("error: ") and shown.count("\n") == 1


def on_a_terminal(lines: Sequence[str], *words: str, **variables: str) -> str:
    """Play on a terminal of its own, waiting for each prompt, and return all that it shows."""
    pty = pytest.importorskip("pty")
    main_end, its_end = pty.openpty()
    settings = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "50"} | variables
    settings = {name: value for name, value in settings.items() if name != "NO_COLOR" or variables}
    command = [sys.executable, "-m", "turngym", "play", *words]
    process = subprocess.Popen(command, stdin=its_end, stdout=its_end, stderr=its_end, env=settings, close_fds=True)
    os.close(its_end)
    shown, waiting, deadline = b"", list(lines), time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([main_end], [], [], 1)[0]:
            continue
        try:
            part = os.read(main_end, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
        if waiting and (shown.endswith(b"> ") or b"> \x1b" in part):
            os.write(main_end, f"{waiting.pop(0)}\n".encode())
    os.close(main_end)
    try:
        process.wait(120)
    finally:
        process.kill()
    assert process.returncode == 0, shown
    return shown.decode()


def test_a_terminal_gets_colours_and_pictures_unless_it_wants_none() -> None:
    game = f"{SUPPORT / 'faulty_states.py'}:Painted"
    coloured = on_a_terminal(["open 9", ":quit"], game, "--seed", "3")
    assert "\x1b[1m" in coloured and "▀" in coloured and "left after 1 turns" in coloured
    plain = on_a_terminal(["open 9", ":quit"], game, "--seed", "3", NO_COLOR="1")
    assert "▀" not in plain and "\x1b[38" not in plain and "left after 1 turns" in plain
    text = on_a_terminal([":quit"], game, "--seed", "3", "--picture", "never")
    assert "▀" not in text and "\x1b[1m" in text


def test_a_pipe_gets_no_picture_unless_it_wants_one() -> None:
    game = f"{SUPPORT / 'faulty_states.py'}:Painted"
    assert "▀" not in piped([":quit"], game).stdout
    assert "▀" in piped([":quit"], game, "--picture", "always").stdout


def test_half_blocks_show_two_rows_in_one_line() -> None:
    picture = np.zeros((3, 2, 3), np.uint8)
    picture[0, 0] = 255, 0, 0
    picture[1, 0] = 0, 0, 255
    picture[2] = 0, 255, 0
    text = half_blocks(picture)
    assert text.plain == "▀▀\n▀▀\n"
    styles = [str(span.style) for span in text.spans]
    assert styles == ["rgb(255,0,0) on rgb(0,0,255)", "rgb(0,0,0) on rgb(0,0,0)", "rgb(0,255,0) on rgb(0,0,0)"]
    console = Console(force_terminal=True, color_system="truecolor", width=20, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.capture() as capture:
        console.print(text, end="")
    console.file.close()
    assert "\x1b[38;2;255;0;0;48;2;0;0;255m▀" in capture.get()


@pytest.mark.parametrize(("height", "width"), [(4, 4), (7, 9), (64, 64), (100, 130), (130, 3)])
def test_a_picture_is_made_to_fit_by_means_of_squares(height: int, width: int) -> None:
    generator = np.random.default_rng(0)
    picture = generator.integers(0, 256, (height, width, 3)).astype(np.uint8)
    small = shrunk(picture, 64, 40)
    assert small.dtype == np.uint8 and small.shape[0] <= 40 and small.shape[1] <= 64
    side = max(1, -(-width // 64), -(-height // 40))
    if side == 1:
        assert small is picture
    rows, columns = (np.minimum(range(side), length - 1) for length in (height, width))  # the edge is continued
    expected = picture[rows][:, columns].reshape(-1, 3).mean(axis=0).round()
    assert small[0, 0].tolist() == expected.tolist()
    assert len(half_blocks(picture, 64, 40).plain.splitlines()) == -(-len(small) // 2)


@pytest.mark.parametrize(
    ("entry_point", "message"),
    [
        ("turngym.envs.core:TextEnv", "TextEnv does not define apply_action"),
        ("turngym.envs.core:Nope", r"the module turngym\.envs\.core has no Nope"),
        ("turngym.envs.core:UNBOUNDED", "is not a text environment of turngym"),
    ],
)
def test_an_incomplete_class_is_named(entry_point: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EnvSpec("mine/Broken-v0", entry_point)
    monkeypatch.setitem(gymnasium.registry, spec.id, spec)
    with pytest.raises(ConfigError, match=message):
        make_text_env(spec.id, {})
