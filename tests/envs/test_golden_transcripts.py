"""Golden transcripts: one episode of each environment as text, replayed byte for byte.

`python tests/envs/test_golden_transcripts.py` records the ones that
are missing; delete a file to record it again, and raise the version of an environment whose transcript changes.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.envs import apps, ask, household, inventory, rules, search, service, sql, tools, webshop, website
from turngym.envs.textgames import SPECS
from turngym.envs.transcript import replay, reset_text, transcript, turn_text
from turngym.errors import ConfigError, MissingExtra
from turngym.types import Info

GOLDEN = Path(__file__).parents[1] / "golden"
IDS = sorted(env_id for env_id, spec in SPECS.items() if not spec.extra) + sorted(
    env_id
    for env_id, spec in {
        **household.SPECS,
        **webshop.SPECS,
        **search.SPECS,
        **tools.SPECS,
        **website.SPECS,
        **service.SPECS,
        **sql.SPECS,
        **ask.SPECS,
        **rules.SPECS,
        **apps.SPECS,
        **inventory.SPECS,
    }.items()
    if not spec.extra
)
FILES = sorted(GOLDEN.glob("*.txt"))
INFO = Info(anchor="a", legal_actions=("x",), action_is_valid=True, success=-1, progress=0.5, score=0.0, fault="")


@contextmanager
def skipped_where_missing() -> Iterator[None]:
    """Skip, with the reason, where this machine lacks a package or program that the environment needs."""
    try:
        yield
    except MissingExtra as error:
        pytest.skip(str(error))


def golden_file(env_id: str) -> Path:
    return GOLDEN / f"{env_id.removeprefix('turngym/').replace('/', '-')}.txt"


def record(env_id: str) -> str:
    """Play mostly as the expert, with one unknown action and one detour."""
    env = gymnasium.make(env_id)
    turn = 0

    def policy(observation: Any, info: Mapping[str, Any]) -> str:
        nonlocal turn
        turn += 1
        if turn == 1:
            return "open the door\n漢 🙂"
        if turn == 2 and info["legal_actions"]:
            return str(info["legal_actions"][0])
        try:
            return str(env.get_wrapper_attr("expert_action")())
        except ConfigError:
            return str(info["legal_actions"][0])

    try:
        return transcript(env, 11, policy)
    finally:
        env.close()


def test_every_text_game_has_a_golden_transcript() -> None:
    for env_id in IDS:
        assert golden_file(env_id).exists(), f"run python {Path(__file__).name} to record {golden_file(env_id).name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_transcript_replays_to_the_same_bytes(path: Path) -> None:
    text = path.read_bytes().decode("utf8")
    with skipped_where_missing():
        assert replay(text) == text


def test_golden_transcript_was_made_with_the_options_of_its_id() -> None:
    """A changed default changes what a score means, so it must show up here."""
    for env_id in IDS:
        header = json.loads(golden_file(env_id).read_text("utf8").split("\n")[0])
        assert header["env_id"] == env_id
        with skipped_where_missing():
            assert header["settings"] == json.loads(json.dumps(gymnasium.make(env_id).get_wrapper_attr("settings")))


def test_golden_transcript_ends_its_episode_and_holds_an_invalid_action() -> None:
    for env_id in IDS:
        text = golden_file(env_id).read_text("utf8")
        assert text.count("terminated: True") + text.count("truncated: True") == 1
        assert "action_is_valid: False" in text


def test_a_changed_line_is_noticed() -> None:
    """Negative oracle: the comparison, one for all environments, must see a change of reward, text or info."""
    for change in ["reward: ", "| ", "progress: "]:
        for path in FILES[::10]:
            lines = path.read_text("utf8").split("\n")
            index = next(index for index, line in enumerate(lines) if line.startswith(change))
            lines[index] += "1"
            changed = "\n".join(lines)
            with skipped_where_missing():
                assert replay(changed) != changed


def test_equal_episodes_give_equal_text_and_other_seeds_other_text() -> None:
    env = gymnasium.make("turngym/Sokoban-v0")
    actions = ["up", "down", "left", "?"]
    first, other = transcript(env, 1, actions), transcript(env, 2, actions)
    assert transcript(gymnasium.make("turngym/Sokoban-v0"), 1, actions) == first != other


def test_actions_and_policy_give_the_same_text() -> None:
    env = gymnasium.make("turngym/GuessTheNumber-v0", high=10)
    guesses = iter(range(1, 11))
    played = transcript(env, 3, lambda observation, info: str(next(guesses)))
    assert transcript(env, 3, [str(guess) for guess in range(1, 11)]) == played
    assert played.count("terminated: True") == 1


def test_actions_after_the_end_are_not_played_and_too_few_leave_the_episode_open() -> None:
    env = gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=2, max_turns=2)
    assert transcript(env, 0, ["1", "2", "1", "2"]).count("turn ") <= 2
    assert transcript(env, 0, []).endswith('fault: ""\n')


def test_transcript_sees_through_wrappers() -> None:
    plain = gymnasium.make("turngym/TowerOfHanoi-v0")
    wrapped = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("turngym/TowerOfHanoi-v0"))
    text, wrapped_text = transcript(plain, 0, ["A C"]), transcript(wrapped, 0, ["A C"])
    assert wrapped_text == text


@pytest.mark.parametrize(
    "action", ["two\nlines", 'action: "up"', "\r\t\0", "\\n", '"', "漢字 🙂", "\ud800", "\u2028", ""]
)
def test_any_action_text_survives_a_replay(action: str) -> None:
    text = transcript(gymnasium.make("turngym/Sokoban-v0"), 0, [action, "up"])
    assert replay(text) == text
    assert text.encode("utf8").decode("utf8") == text and "\r" not in text


@pytest.mark.parametrize(
    ("one", "other"),
    [("a\\nb", "a\nb"), ("a ", "a\\x20"), ("a\r", "a"), ("", "\n"), ("\u2028", "\n"), ("é", "e\u0301")],
)
def test_different_texts_look_different(one: str, other: str) -> None:
    assert reset_text(one, {**INFO}) != reset_text(other, {**INFO})


def test_types_of_vector_columns_do_not_change_the_text() -> None:
    """A vector gives numpy scalars and lists where a single environment gives Python's own types."""
    columns = {**INFO, "success": np.int64(-1), "progress": np.float64(0.5), "action_is_valid": np.bool_(True)}
    columns["legal_actions"] = ["x"]
    flags: Any = np.array([False, True])
    single = turn_text(1, "x", "o", 1.0, False, True, {**INFO})
    assert turn_text(1, "x", "o", np.float64(1.0), flags[0], flags[1], columns) == single


def test_pictures_are_shown_by_their_hash() -> None:
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    text = reset_text({"text": "t", "image": picture}, {**INFO, "more": np.int64(3)})
    assert "uint8[2, 2, 3] " in text and "info.more: 3" in text
    assert text == reset_text({"text": "t", "image": picture.copy()}, {**INFO, "more": 3})
    assert text != reset_text({"text": "t", "image": picture + 1}, {**INFO, "more": 3})


def test_objects_without_a_text_form_are_refused() -> None:
    with pytest.raises(TypeError, match="text, numbers and arrays of numbers, got set"):
        reset_text({"text": {1}}, {**INFO})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first line must be its JSON header"),
        ("turn 1\n", "first line must be its JSON header"),
        ("[]", "first line must be its JSON header"),
        ('{"format": "turngym transcript 1"}', "first line must be its JSON header"),
        ('{"format": "turngym transcript 0"}', "'turngym transcript 0', expected 'turngym transcript 1'"),
    ],
)
def test_text_that_is_no_transcript_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replay(text)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for env_id in IDS:
        if not golden_file(env_id).exists():
            golden_file(env_id).write_bytes(record(env_id).encode())
