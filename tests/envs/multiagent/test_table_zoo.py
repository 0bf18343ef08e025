"""The PettingZoo views: rewards, retries, elimination, simultaneous decisions, seeds, pictures, snapshots."""

import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_views import NONSENSE
from toy_games import Coins, Secret, Spies

from turngym.envs.multiagent import TableAEC, TableParallel, make_aec, make_parallel
from turngym.envs.multiagent.records import transcript_text
from turngym.errors import ConfigError, EpisodeOver
from turngym.types import INFO_TYPES

GAMES = ["toy_games:Secret", "toy_games:Coins", "toy_games:Spies"]


def act(env: TableAEC, number: int) -> str:
    legal = env.infos[env.agent_selection]["legal_actions"]
    return str(legal[number % len(legal)]) if legal else f"word {number}"


def test_last_gives_what_an_agent_earned_since_its_previous_answer() -> None:
    """Recomputed from the rewards of every single step."""
    game = Coins(3, rounds=5)
    env = TableAEC(game, invalid_penalty=0.25)
    env.reset(seed=1)
    earned: dict[str, float] = defaultdict(float)
    for number, agent in enumerate(env.agent_iter()):
        _, reward, terminated, _, _ = env.last()
        assert reward == earned[agent]
        earned[agent] = 0.0
        env.step(None if terminated else "?" if number % 4 == 0 else act(env, number))
        for name, more in env.rewards.items():
            earned[name] += more
    wrong = [counts.unreadable + counts.illegal for counts in env.table.counts]
    assert env.table.returns == [points - 0.25 * count for points, count in zip(game.points, wrong, strict=True)]
    assert any(wrong) and any(game.points)


def test_an_invalid_answer_selects_the_same_agent_again_with_the_reason() -> None:
    env = TableAEC(Secret(), retries=2, invalid_penalty=0.5)
    env.reset(seed=0, options={"digit": 1})
    env.step("one")
    for attempt in range(2):
        env.step("seven")
        observation, reward, *_, info = env.last()
        assert env.agent_selection == "player_1" and reward == -0.5 and not info["action_is_valid"]
        assert observation == {"text": "That is not one of the legal actions.\nWhich digit is it?"}, attempt
        assert env.infos["player_0"]["action_is_valid"]
    env.step("seven")
    assert env.agent_selection == "player_0" and env.table.actions[-1] == (1, None)
    assert env.table.counts[1].forfeits == 1 and env.table.returns[1] == -2.5


def test_eliminated_agents_stay_unasked_and_share_the_result() -> None:
    env = TableAEC(Spies(5, talk=False))
    env.reset(seed=0, options={"spy": 0})
    env.step("remove player_1")
    for voter, vote in (("player_0", "vote player_3"), ("player_2", "vote player_0"), ("player_3", "vote player_0")):
        assert env.agents == env.possible_agents and env.agent_selection == voter
        env.step(vote)
        assert not any(env.terminations.values()) and not any(env.truncations.values())
    env.step("vote player_0")
    assert env.terminations == dict.fromkeys(env.agents, True)
    assert env.rewards == {"player_0": -1.0, **{f"player_{seat}": 1.0 for seat in range(1, 5)}}
    _, reward, terminated, truncated, info = env.last()
    assert (reward, terminated, truncated, info["success"]) == (-1.0, True, False, 0)
    assert [env.infos[agent]["success"] for agent in env.agents] == [0, 1, 1, 1, 1]
    for agent in list(env.agents):
        assert env.agent_selection == agent
        env.step(None)
    assert env.agents == [] and env.infos == {} and env.rewards == {}
    with pytest.raises(EpisodeOver, match="spies without a game: call reset"):
        env.step("vote player_0")
    env.reset(seed=0)
    assert len(env.agents) == 5 and not any(env.terminations.values())


def test_nobody_sees_a_simultaneous_answer_before_all_are_in() -> None:
    env = TableAEC(Coins(3))
    env.reset(seed=0)
    before = [env.observe(agent) for agent in env.agents]
    env.step("tails")
    assert env.agent_selection == "player_1" and env.observe("player_0") == {"text": ""}
    assert [env.observe(agent) for agent in env.agents[1:]] == before[1:]
    env.step("heads")
    env.step("heads")
    assert all("player_0 tails, player_1 heads" in env.observe(agent)["text"] for agent in env.agents)


@pytest.mark.parametrize("game", GAMES)
def test_infos_are_the_whole_table_for_every_agent(game: str) -> None:
    env, both = make_aec(game), make_parallel(game)
    env.reset(seed=0)
    _, infos = both.reset(seed=0)
    assert infos == env.infos
    for info in infos.values():
        assert {key: type(value) for key, value in info.items()} == INFO_TYPES
    assert [bool(env.infos[agent]["legal_actions"]) for agent in env.agents if agent not in both.active_agents] == [
        False
    ] * (len(env.agents) - len(both.active_agents))


def test_a_dead_agent_must_be_stepped_with_none() -> None:
    env = TableAEC(Coins(2, rounds=1))
    env.reset(seed=0)
    env.step("heads")
    env.step("heads")
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step("heads")


@pytest.mark.parametrize("make", [make_aec, make_parallel])
def test_seeds_name_games_and_no_seed_goes_on_to_others(make: Any) -> None:
    def logs(*seeds: int | None) -> list[str]:
        env = make("toy_games:Spies")
        found = []
        for seed in seeds:
            env.reset(seed=seed)
            found.append(transcript_text(env.table))
        return found

    one = logs(1, None, None, None, None, None)
    assert logs(1, None, None, None, None, None) == one and len(set(one)) > 1
    assert logs(2, 1, None)[1:] == one[:2]
    assert len(set(logs(*[None] * 12))) > 1


def test_an_option_that_the_game_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match="no option 'spie'"):
        TableAEC(Spies()).reset(options={"spie": 1})
    with pytest.raises(ConfigError, match="cannot render 'rgb_array': pass 'ansi'"):
        TableAEC(Spies(), render_mode="rgb_array")


def test_parallel_takes_the_active_agents_and_ignores_all_others() -> None:
    env = TableParallel(Spies(5, talk=False))
    env.reset(seed=0, options={"spy": 3})
    assert list(env.active_agents) == ["player_3"]
    noise: dict[str, Any] = {"player_0": "remove player_3", "player_1": None, "player_2": 5}
    _, rewards, terminations, truncations, infos = env.step({**noise, "player_3": "remove player_0"})
    assert env.table.actions == [(3, "remove player_0")] and set(rewards.values()) == {0.0}
    assert list(env.active_agents) == ["player_1", "player_2", "player_3", "player_4"]
    assert set(infos) == set(terminations) == set(truncations) == set(env.possible_agents)


def test_parallel_waits_for_those_who_have_not_given_a_valid_answer() -> None:
    env = TableParallel(Coins(3), invalid_penalty=0.5)
    env.reset(seed=0)
    _, rewards, *_, infos = env.step({"player_0": "heads", "player_1": "edge", "player_2": None})
    assert env.active_agents == ("player_1", "player_2") and not env.table.actions
    assert rewards == {"player_0": 0.0, "player_1": -0.5, "player_2": 0.0}
    assert [info["action_is_valid"] for info in infos.values()] == [True, False, True]
    env.step({"player_0": "tails", "player_1": "tails", "player_2": "tails"})
    assert env.table.actions == [(0, "heads"), (1, "tails"), (2, "tails")]


def test_parallel_refuses_what_is_no_text_before_anything_is_taken() -> None:
    env = TableParallel(Coins(2))
    with pytest.raises(EpisodeOver, match="call reset"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(TypeError, match="action of player_1 is int: pass a str, or None to wait"):
        env.step({"player_0": "heads", "player_1": 1})  # type: ignore[dict-item]
    assert env.active_agents == ("player_0", "player_1")


def test_the_picture_shows_every_line_with_its_readers(capsys: pytest.CaptureFixture[str]) -> None:
    env = TableAEC(Secret(), render_mode="ansi")
    env.reset(seed=0, options={"digit": 3})
    assert env.render() == "[player_0] Your digit is 3.\n[all] The digit is below 4."
    assert TableAEC(Secret()).render() is None
    human = TableParallel(Secret(), render_mode="human")
    human.reset(seed=0, options={"digit": 3})
    human.render()
    human.step({"player_0": NONSENSE})
    assert human.render() is None and human.render() is None
    printed = capsys.readouterr().out
    assert printed.count("Your digit is 3.") == 1 and "\\ud800" in printed
    env.close()


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("steps", [0, 2, 5])
def test_a_restored_aec_goes_on_as_the_original(game: str, steps: int) -> None:
    env = make_aec(game, invalid_penalty=0.5)
    env.reset(seed=3)
    for number in range(steps):
        if not any(env.terminations.values()):
            env.step(act(env, number) if number % 3 else "?")
    snapshot = env.snapshot()
    twin = make_aec(game, invalid_penalty=0.5)
    twin.restore(snapshot)
    assert twin.snapshot() == snapshot == env.snapshot()
    for _ in range(30):
        assert twin.agents == env.agents and twin.table.is_over == env.table.is_over
        if not env.agents:
            break
        assert str(twin.last()) == str(env.last()) and twin.infos == env.infos and twin.rewards == env.rewards
        action = None if env.terminations[env.agent_selection] else act(env, 1)
        env.step(action)
        twin.step(action)
    env.reset()
    twin.reset()
    assert transcript_text(env.table) == transcript_text(twin.table)


def test_a_restored_parallel_goes_on_in_the_middle_of_a_simultaneous_decision() -> None:
    env, twin = TableParallel(Coins(3)), TableParallel(Coins(3))
    env.reset(seed=3)
    env.step({"player_1": "tails", "player_2": "no"})
    observations, infos = twin.restore(env.snapshot())
    assert twin.active_agents == env.active_agents == ("player_0", "player_2")
    assert infos["player_2"]["action_is_valid"] is False and "heads or tails?" in observations["player_2"]["text"]
    for _ in range(3):
        actions = dict.fromkeys(env.agents, "heads")
        assert env.step(actions) == twin.step(actions)
    assert env.agents == twin.agents == []


def test_snapshots_of_others_are_refused() -> None:
    env = make_aec("toy_games:Coins")
    with pytest.raises(EpisodeOver, match="before the first reset"):
        env.snapshot()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"belongs to coins with .*, not to secret"):
        make_aec("toy_games:Secret").restore(env.snapshot())
    with pytest.raises(ConfigError, match="belongs to coins"):
        make_aec("toy_games:Coins", rounds=7).restore(env.snapshot())
    for bad in (b"", b"[]", b"{}", json.dumps({"table": 1}).encode()):
        with pytest.raises(ConfigError, match="not a snapshot of turngym"):
            env.restore(bad)


@settings(max_examples=60)
@given(texts=st.lists(st.text(max_size=30) | st.just("\ud800") | st.just("vote player_1"), max_size=25))
@pytest.mark.parametrize("game", GAMES)
def test_any_texts_are_answered_alike_by_both_views(game: str, texts: list[str]) -> None:
    env, both = make_aec(game), make_parallel(game)
    env.reset(seed=5)
    both.reset(seed=5)
    for text in texts:
        if env.table.is_over:
            break
        both.step({env.agent_selection: text})
        env.step(text)
    assert transcript_text(env.table) == transcript_text(both.table)
