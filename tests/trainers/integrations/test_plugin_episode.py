"""What the plug-ins share, without any framework: tasks as rows of a data set, and episodes that survive faults."""

import json
from typing import Any

import gymnasium
import pytest

from turngym.errors import ConfigError, EpisodeOver, UnknownName
from turngym.trainers.integrations.episode import Episode, Result, Task, task_rows

WALK = Task("turngym/NumberLine-v0", 3, {"highest": 5, "max_turns": 6})
TASKS = [
    WALK,
    Task("turngym/TowerOfHanoi-v0", 0, {"discs": 2}, wrappers=("turn_limit:limit=3", "history:k=2")),
    Task("turngym/KuhnPokerSeat-v0", 11, {"opponents": "random", "split": "test"}),
]


def played(episode: Episode, task: Task, answers: list[str]) -> list[str]:
    """Return all texts of an episode; the answers repeat until it ends."""
    texts = [message["content"] for message in episode.begin(task)]
    while not episode.is_over:
        texts.append(episode.step(answers[len(texts) % len(answers)]))
    return texts


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.env_id)
def test_a_row_brings_its_task_back_through_json(task: Task) -> None:
    row = json.loads(json.dumps({**task.row(), "prompt": [], "index": 5}))
    assert Task.of_row(row) == task


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.env_id)
def test_equal_rows_play_the_same_episode_in_a_used_and_in_a_fresh_object(task: Task) -> None:
    used = Episode("plain")
    for other in TASKS:
        played(used, other, ["+", "A B", "call", "check"])
    answers = ["A C", "+", "check", "call", "A B"]
    assert played(used, task, answers) == played(Episode("plain"), task, answers)


def test_a_row_may_hold_objects_and_leave_out_what_is_empty() -> None:
    assert Task.of_row({"env_id": "e", "seed": "4", "settings": {"a": 1}, "options": None}) == Task("e", 4, {"a": 1})


def test_what_a_row_says_comes_before_the_defaults() -> None:
    defaults: dict[str, Any] = {"env_id": "e", "settings": {"a": 1, "b": 2}, "wrappers": ("history:k=2",)}
    assert Task.of_row({"seed": 0}, **defaults) == Task("e", 0, {"a": 1, "b": 2}, wrappers=("history:k=2",))
    row = {"env_id": "f", "seed": 0, "settings": '{"b": 3}', "wrappers": '["turn_limit"]'}
    assert Task.of_row(row, **defaults) == Task("f", 0, {"a": 1, "b": 3}, wrappers=("turn_limit",))


A_ROW_THAT_IS_NO_TASK_SAYS_WHY: list[tuple[dict[str, Any], str]] = [
    ({"env_id": "turngym/Sokoban-v0"}, "'seed', got None"),
    ({"env_id": "turngym/Sokoban-v0", "seed": "x"}, "'seed', got 'x'"),
    ({"env_id": "turngym/Sokoban-v0", "seed": -1}, "0 or more"),
    ({"seed": 1}, "registered id"),
    ({"env_id": "os:system", "seed": 1}, "registered id"),
    ({"env_id": "e", "seed": 1, "settings": '{"game": "os:system"}'}, "must not choose what is imported"),
    ({"env_id": "e", "seed": 1, "settings": {"opponents": {"player_0": "a:B"}}}, "must not choose"),
    ({"env_id": "e", "seed": 1, "settings": {"opponents": ["random", "a:B"]}}, "must not choose"),
    ({"env_id": "e", "seed": 1, "settings": "{"}, "'settings' must hold JSON"),
    ({"env_id": "e", "seed": 1, "options": "[1]"}, "JSON dict"),
    ({"env_id": "e", "seed": 1, "wrappers": 5}, "'wrappers' must hold JSON"),
]


def test_a_row_that_is_no_task_says_why() -> None:
    for row, message in A_ROW_THAT_IS_NO_TASK_SAYS_WHY:
        with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
            Task.of_row(row)


def test_rows_have_the_same_columns_for_every_environment_so_that_one_data_set_holds_them() -> None:
    rows = [row for task in TASKS for row in task_rows(task.env_id, [1], settings=task.settings)]
    assert len({tuple((name, type(value)) for name, value in row.items()) for row in rows}) == 1


def test_the_rules_come_first_then_the_observation_and_what_the_row_says_before_both() -> None:
    before = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": ""},
        {"role": "user", "content": "Hi"},
    ]
    messages = Episode().begin(WALK, before)
    assert [message["role"] for message in messages] == ["system", "user", "user"]
    assert messages[0]["content"].startswith("Be brief.\n\nYou stand on a number line")
    assert messages[0]["content"].endswith("write the action as <action>...</action>.")
    assert [message["content"] for message in messages[1:]] == ["Hi", "You are at 4. The target is 5."]


def test_legal_actions_are_shown_only_when_asked_for() -> None:
    assert "Legal actions: +, -" in Episode(legal_actions=True).begin(WALK)[-1]["content"]
    assert "Legal" not in Episode().begin(WALK)[-1]["content"]


def test_the_result_counts_the_turns_of_an_episode() -> None:
    episode = Episode()
    episode.begin(WALK)
    for completion in ("I do not know", "<action>-</action>", "so <action>+</action>", "<action>+</action>"):
        episode.step(completion)
    assert episode.result == Result([0, 0, 0, 1.0], terminated=True, success=True, score=1.0, invalid=1)
    assert episode.result.total == 1.0
    with pytest.raises(EpisodeOver):
        episode.step("<action>+</action>")


def test_a_turn_limit_truncates_and_does_not_terminate() -> None:
    episode = Episode()
    episode.begin(WALK)
    for _ in range(6):
        episode.step("<action>-</action>")
    assert episode.result.numbers() == {
        "episode_return": 0.0,
        "success": 0.0,
        "score": 0.0,
        "turns": 6.0,
        "invalid_actions": 0.0,
        "terminated": 0.0,
        "truncated": 1.0,
        "faulted": 0.0,
    }


def test_an_episode_that_is_cut_is_truncated_and_one_that_has_ended_stays_as_it_is() -> None:
    episode = Episode("plain")
    episode.begin(WALK)
    episode.cut()
    assert episode.is_over and episode.result.truncated
    episode.begin(WALK)
    episode.step("+")
    episode.cut()
    assert (episode.result.terminated, episode.result.truncated) == (True, False)


@pytest.mark.parametrize("method", ["step", "reset"])
def test_a_fault_ends_its_episode_without_a_return_and_the_next_one_gets_a_new_environment(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode, healthy = Episode("plain"), played(Episode("plain"), WALK, ["+"])
    episode.begin(WALK)
    broken = episode._env

    def break_down(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(type(gymnasium.make(WALK.env_id)), method, break_down)
        if method == "step":
            assert episode.step("+") == "The environment broke."
        else:
            episode.begin(WALK)
    assert episode.is_over
    assert episode.result.fault == "MemoryError: no room"
    assert (episode.result.total, episode.result.truncated, episode.result.terminated) == (None, True, False)
    assert played(episode, WALK, ["+"]) == healthy
    assert episode._env is not broken


def test_what_is_wrong_with_a_row_is_raised_and_is_no_fault() -> None:
    with pytest.raises(ConfigError):
        Episode().begin(Task("turngym/NumberLine-v0", 0, {"highest": -4}))
    with pytest.raises(UnknownName):
        Episode().begin(Task("turngym/NumberLine-v0", 0, wrappers=("no_such_wrapper",)))
    with pytest.raises(gymnasium.error.NameNotFound):
        Episode().begin(Task("turngym/NoSuchGame-v0", 0))


def test_nothing_can_be_played_before_the_first_and_after_the_last_episode() -> None:
    episode = Episode("plain")
    assert episode.is_over
    episode.begin(WALK)
    episode.close()
    episode.close()
    with pytest.raises(EpisodeOver):
        episode.step("+")


def test_an_environment_with_pictures_is_played_by_its_text() -> None:
    task = Task("turngym/FrozenLake-v0", 3, {"image": True})
    assert Episode().begin(task)[-1] == Episode().begin(Task("turngym/FrozenLake-v0", 3))[-1]
