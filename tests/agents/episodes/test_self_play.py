"""Self-play: who sits where, what a trajectory of a seat holds, and that a broken game teaches nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.self_play import LEARNER, GameSpec, PlayerAgent, SelfPlay, seating_of
from turngym.agents.players.random import RandomAgent
from turngym.agents.trajectory import Trajectory
from turngym.envs.multiagent.game import Game
from turngym.envs.tablegames.kuhn_poker.game import KuhnPoker
from turngym.errors import ConfigError, UnknownName
from turngym.trainers.core.turn_table import turn_table, usable


class Scripted(Agent):
    """Looks actions up by anchor, and logs what it was asked."""

    def __init__(self, actions: Mapping[str, str]) -> None:
        self.actions = actions
        self.batches: list[list[Request]] = []
        self.forgotten: list[int] = []

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        self.batches.append(list(requests))
        return [Decision(self.actions[r.info["anchor"]], "said", (1, r.episode), (r.turn,), (-0.5,)) for r in requests]

    def forget(self, episode: int) -> None:
        self.forgotten.append(episode)


CAUTIOUS = {card: "check" for card in "JQK"} | {f"{card} check": "check" for card in "JQK"}
LONG = (
    {card: "check" for card in "JQK"}
    | {f"{card} check": "bet" for card in "JQK"}
    | {f"{card} check bet": "call" for card in "JQK"}
)


def kuhn(tables: int = 4, **options: Any) -> SelfPlay:
    return SelfPlay(KuhnPoker, tables, env_id="turngym/KuhnPoker-v0", **options)


def specs(count: int, **fixed: Any) -> list[GameSpec]:
    return [GameSpec(i, 100 + i, i, **fixed) for i in range(count)]


def summary(trajectories: Sequence[Trajectory]) -> list[Any]:
    return [(t.spec, t.role, [(turn.observation, turn.action, turn.reward) for turn in t.turns]) for t in trajectories]


def test_a_learner_that_plays_alone_has_a_trajectory_for_every_seat() -> None:
    agent = Scripted(LONG)
    found = kuhn().play(specs(3), {LEARNER: agent})
    assert [t.spec.episode for t in found] == [0, 1, 2, 3, 4, 5]
    assert [t.spec.group for t in found] == [0, 0, 1, 1, 2, 2]
    assert [t.role for t in found] == ["player_0", "player_1"] * 3
    assert {t.policy for t in found} == {LEARNER}
    assert {t.env_id for t in found} == {"turngym/KuhnPoker-v0"}
    assert [[turn.agent for turn in t.turns] for t in found] == [["player_0"] * 2, ["player_1"]] * 3
    assert sorted(agent.forgotten) == [0, 1, 2, 3, 4, 5]
    assert all(t.terminated and not t.truncated and not t.fault for t in found)
    assert [t.success for t in found[:2]] in ([0, 1], [1, 0])


def test_the_reward_of_a_turn_is_all_that_the_seat_earned_until_it_was_asked_again() -> None:
    """Check, bet, call: the first seat's check brings nothing, its call ends the hand; the other earns by its bet."""
    for first, second in zip(*[iter(kuhn().play(specs(8), {LEARNER: Scripted(LONG)}))] * 2, strict=True):
        assert [turn.reward for turn in first.turns] in ([0.0, 2.0], [0.0, -2.0])
        assert second.turns[0].reward == -first.turns[1].reward
        assert second.score == second.reward_sum == -first.reward_sum


def test_the_tokens_that_were_sampled_are_the_tokens_of_the_turn() -> None:
    turn = kuhn().play(specs(1), {LEARNER: Scripted(LONG)})[0].turns[1]
    assert (turn.prompt_ids, turn.completion_ids, turn.logprobs) == ((1, 0), (1,), (-0.5,))
    assert (turn.completion, turn.action, turn.anchor[1:]) == ("said", "call", " check bet")


def test_neither_the_number_of_tables_nor_the_batches_change_a_game() -> None:
    agents = {LEARNER: RandomAgent(3)}
    one = kuhn(1).play(specs(12), agents)
    assert summary(one) == summary(kuhn(5).play(specs(12), agents)) == summary(kuhn(50).play(specs(12), agents))


def test_all_seats_that_wait_for_a_policy_are_asked_in_one_batch() -> None:
    agent = Scripted(CAUTIOUS)
    kuhn(6).play(specs(6), {LEARNER: agent})
    assert [len(batch) for batch in agent.batches] == [6, 6]


class Forgetful(Scripted):
    """Has no room for the prompt of the first seat's second question."""

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        decided = super().act(requests)
        return [Decision("", too_long="too long") if r.turn else d for r, d in zip(requests, decided, strict=True)]

    def final_prompt(self, request: Request) -> tuple[int, ...]:
        return (8, request.turn)


def test_a_seat_whose_prompt_does_not_fit_is_truncated_and_its_game_goes_on() -> None:
    whole = kuhn().play(specs(3), {LEARNER: Scripted(LONG)})
    cut = kuhn().play(specs(3), {LEARNER: Forgetful(LONG)})
    assert [(t.truncation_reason, t.truncation_detail, t.final_prompt_ids) for t in cut[::2]] == [
        ("context", "too long", (8, 1))
    ] * 3
    assert all(t.truncated and not t.terminated and not t.fault and (t.success, t.score) == (0, 0.0) for t in cut[::2])
    assert [t.turns for t in cut[::2]] == [t.turns[:1] for t in whole[::2]]
    assert [len(t.turns) for t in cut[1::2]] == [1, 1, 1] and all(t.terminated for t in cut[1::2])
    assert kuhn(final_prompts=False).play(specs(1), {LEARNER: Forgetful(LONG)})[0].final_prompt_ids == ()


def test_an_opponent_whose_prompt_does_not_fit_forfeits_and_is_counted() -> None:
    play = kuhn()
    found = play.play(specs(3, opponent="past", side=1), {LEARNER: Scripted(LONG), "past": Forgetful(LONG)})
    assert [t.terminated for t in found] == [True] * 3 and play.cut_opponents == 3


def test_a_seat_without_room_for_its_first_prompt_has_a_trajectory_without_turns() -> None:
    class Mute(Scripted):
        def act(self, requests: Sequence[Request]) -> list[Decision]:
            return [Decision("", too_long="too long")] * len(requests)

    found = kuhn().play(specs(2), {LEARNER: Mute(LONG)})
    assert [(t.truncation_reason, len(t.turns)) for t in found] == [("context", 0), ("", 0)] * 2, "one forfeits"


def test_equal_seeds_begin_with_the_same_deal() -> None:
    twice = [GameSpec(i, 7, 0) for i in range(4)]
    found = kuhn().play(twice, {LEARNER: Scripted(CAUTIOUS)})
    assert len({t.turns[0].observation for t in found if t.role == "player_0"}) == 1


def test_what_an_interrupt_left_behind_disturbs_no_later_game() -> None:
    class Tired(Scripted):
        def act(self, requests: Sequence[Request]) -> list[Decision]:
            if len(self.batches) == 1:
                raise KeyboardInterrupt
            return super().act(requests)

    playing = kuhn()
    with pytest.raises(KeyboardInterrupt):
        playing.play(specs(4), {LEARNER: Tired(LONG)})
    again = playing.play(specs(4), {LEARNER: Scripted(LONG)})
    assert summary(again) == summary(kuhn().play(specs(4), {LEARNER: Scripted(LONG)}))


def test_against_an_opponent_the_learner_plays_one_side_and_only_its_turns_are_recorded() -> None:
    played = [GameSpec(i, i, i, "equilibrium", i) for i in range(6)]
    agent = RandomAgent(0)
    found = kuhn().play(played, {LEARNER: agent})
    assert [t.role for t in found] == ["player_0", "player_1"] * 3
    assert [t.spec.episode for t in found] == [0, 3, 4, 7, 8, 11]
    assert all(turn.agent == t.role for t in found for turn in t.turns)


def test_an_opponent_may_be_an_agent_such_as_a_frozen_self() -> None:
    past, learner = Scripted(LONG), Scripted(LONG)
    found = kuhn().play(specs(4, opponent="past-000020", side=1), {LEARNER: learner, "past-000020": past})
    assert [t.role for t in found] == ["player_1"] * 4
    assert sum(map(len, past.batches)) == 8 and sum(map(len, learner.batches)) == 4
    assert sorted(past.forgotten) == [0, 2, 4, 6] and sorted(learner.forgotten) == [1, 3, 5, 7]


def test_sides_are_teams_so_that_a_learner_plays_with_its_own() -> None:
    teams = ["wolf", "village", "wolf", "village"]
    assert seating_of(GameSpec(0, 0), teams) == (LEARNER,) * 4
    assert seating_of(GameSpec(0, 0, opponent="x", side=3), teams) == (LEARNER, "x", LEARNER, "x")


def test_an_invalid_answer_is_a_turn_of_its_own_and_the_seat_is_asked_again() -> None:
    class Mumbling(Scripted):
        def act(self, requests: Sequence[Request]) -> list[Decision]:
            return [Decision("what?" if r.turn == 0 else "check") for r in requests]

    first, second = kuhn(invalid_penalty=0.25).play(specs(1), {LEARNER: Mumbling({})})
    assert [turn.action_is_valid for turn in first.turns] == [False, True]
    assert first.turns[0].reward == -0.25
    assert [turn.action for turn in second.turns] == ["what?", "check"]


def test_joint_views_hold_what_all_seats_know_and_are_kept_where_they_are_wanted() -> None:
    first, _ = kuhn(joint_views=True).play(specs(1), {LEARNER: Scripted(LONG)})
    view, end = first.turns[1].columns["joint_view"], first.columns["final_joint_view"]
    assert isinstance(view, str) and isinstance(end, str)
    lines = view.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["player_0", "player_1"]
    assert all(line.endswith(" check bet") for line in lines)
    assert end.count("over") == 2
    plain = kuhn().play(specs(1), {LEARNER: Scripted(LONG)})[0]
    assert plain.turns[0].columns == plain.columns == {}


class Fragile(KuhnPoker):
    """Breaks in games whose seed is odd: in the rules after a first bet, and at once for seeds of 3."""

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        if self._deals[0][0] == "J":
            raise RuntimeError("the dealer has left")
        return super().commit(actions)


class Shy(KuhnPoker):
    """Cannot even begin with a jack in the first seat."""

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        super().begin(generator, options)
        if options == {} and self._deals[0][0] == "J" and getattr(self, "has_begun", False):
            raise RuntimeError("no cards")
        self.has_begun = True


@pytest.mark.parametrize("game", [Fragile, Shy])
def test_a_game_that_breaks_enters_neither_loss_nor_statistics_and_stops_no_other(game: type[Game]) -> None:
    played = SelfPlay(game, 3, env_id="fragile")
    found = played.play(specs(30), {LEARNER: Scripted(LONG)})
    broken = [t for t in found if t.fault]
    whole = [t for t in found if not t.fault]
    assert 0 < len({t.spec.seed for t in broken}) < 30
    assert {t.spec.seed for t in broken}.isdisjoint(t.spec.seed for t in whole)
    assert {t.spec.seed for t in broken + whole} == {spec.seed for spec in specs(30)}
    assert all(t.truncated and not t.terminated and t.success == -1 for t in broken)
    assert len(usable(found)) == len(whole)
    assert turn_table(found).num_episodes == len(whole)


def test_wrong_calls_are_answered_with_the_way_out() -> None:
    with pytest.raises(UnknownName, match=r"no player of kuhn_poker named 'equilibrum'. Did you mean 'equilibrium'\?"):
        kuhn().play(specs(1, opponent="equilibrum"), {LEARNER: RandomAgent(0)})
    with pytest.raises(ConfigError, match=r"self-play needs an agent for the policy 'learner', got \['me'\]"):
        kuhn().play(specs(1), {"me": RandomAgent(0)})
    with pytest.raises(ConfigError, match=r"two games of self-play have the same number"):
        kuhn().play([GameSpec(0, 1), GameSpec(0, 2)], {LEARNER: RandomAgent(0)})


def test_a_player_answers_as_an_agent_for_demonstrations() -> None:
    played = kuhn(3)
    player = PlayerAgent(played.vector.tables, "equilibrium")
    found = played.play(specs(60), {LEARNER: player})
    calls = {turn.action for t in found for turn in t.turns if turn.anchor in ("K bet", "K check bet")}
    folds = {turn.action for t in found for turn in t.turns if turn.anchor in ("J bet", "J check bet")}
    assert (calls, folds) == ({"call"}, {"fold"})
    assert not player._players
    again = kuhn(7)
    assert summary(found) == summary(again.play(specs(60), {LEARNER: PlayerAgent(again.vector.tables, "equilibrium")}))
