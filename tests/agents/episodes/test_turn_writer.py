"""One writer of turns: the same episode, played through every path, leaves the same record."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import pytest

from turngym.agents.chat import Note
from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.rollout import rollout
from turngym.agents.episodes.seat_player import SeatPlayer, act_together
from turngym.agents.episodes.self_play import LEARNER, GameSpec, SelfPlay
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.agents.usage import Usage
from turngym.benchmarks.tournaments.pairings import Match
from turngym.benchmarks.tournaments.seats import LiveGame, Roster
from turngym.envs.multiagent.players import Player, make_player
from turngym.envs.multiagent.registration import make_game
from turngym.envs.multiagent.table import Table
from turngym.envs.vector import make_vec
from turngym.trainers.integrations.episode import Episode, Task

GAME, SEAT_ID, OPPONENT, SEED = "turngym/TicTacToe-v0", "turngym/TicTacToeSeat-v0", "first_legal", 5
OPTIONS: dict[str, Any] = {"seat": "player_0", "opponents": OPPONENT}


class Scripted(Agent):
    """Takes the last legal action, and writes nonsense in its second turn; tells everything that an agent can."""

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        return [self.decide(request) for request in requests]

    def decide(self, request: Request) -> Decision:
        text = "nonsense" if request.turn == 1 else request.info["legal_actions"][-1]
        return Decision(
            text,
            text,
            prompt_ids=(1, request.turn),
            completion_ids=(2, 3),
            logprobs=(-0.5, -0.25),
            usage=Usage(7, 2, calls=1, latency=0.5),
            notes=(Note("summary", f"turn {request.turn}"),),
            entropies=(0.1, 0.2),
            columns={"mood": float(request.turn)},
        )


def by_rollout() -> Trajectory:
    vector = make_vec(SEAT_ID, 1, autoreset_mode="disabled", **OPTIONS)
    try:
        return rollout(vector, Scripted(), [EpisodeSpec(0, SEED)])[0]
    finally:
        vector.close()


def game_seed() -> int:
    """Return the seed of the game that the seed of the environment's reset leads to."""
    env = gymnasium.make(SEAT_ID, **OPTIONS)
    env.reset(seed=SEED)
    return int(env.get_wrapper_attr("instance").rpartition(" ")[2])


def by_self_play() -> Trajectory:
    play = SelfPlay(lambda: make_game(GAME), 1, env_id=SEAT_ID)
    side = play.sides.index(play.rules.team(0))
    return play.play([GameSpec(0, game_seed(), opponent=OPPONENT, side=side)], {LEARNER: Scripted()})[0]


class Seats(Roster):
    """Makes the players of the one game of a tournament."""

    def __init__(self) -> None:
        """Hold no players by name."""

    def make(self, name: str) -> Player:
        return SeatPlayer(Scripted()) if name == "scripted" else make_player(name, make_game(GAME))


def by_tournament() -> Trajectory:
    live = LiveGame(Match(0, game_seed(), ("scripted", OPPONENT)), Table(make_game(GAME), retries=1), Seats())
    while asked := list(live.asked_agents()):
        decisions = act_together([(player, request) for _, player, request in asked])
        for (seat, _, request), decision in zip(asked, decisions, strict=True):
            live.answer(seat, request, decision, 1.0)
    live.end()
    live.content()
    return live.trajectories[0]


def by_plugin() -> Trajectory:
    episode, agent, turn = Episode("plain"), Scripted(), 0
    episode.begin(Task(SEAT_ID, SEED, OPTIONS))
    while not episode.is_over:
        decided = agent.decide(dataclasses.replace(episode._request(), turn=turn))
        episode.step(decided.completion, decided.prompt_ids, decided.completion_ids, decided.logprobs)
        turn += 1
    return episode.trajectory


OF_TURNS: dict[Callable[[], Trajectory], dict[str, str]] = {
    by_self_play: {},
    by_tournament: {},
    by_plugin: {
        "usage": "a framework counts its own costs",
        "notes": "a framework hands over a text and its tokens",
        "entropies": "a framework hands over a text and its tokens",
        "columns": "a framework hands over a text and its tokens",
    },
}
"""Path -> field of a turn that differs from that of a rollout, and the reason."""
OF_EPISODES = {
    "spec": "each path counts its episodes in its own way",
    "env_id": "a tournament names the game, the others the environment",
    "instance": "games at tables are named by their seeds, environments by a hash of what is played",
    "role": "only games between seats have roles",
    "policy": "only games between seats have policies",
    "turns": "compared one by one",
}
"""Field of a trajectory that differs from that of a rollout, and the reason."""


def fields_of(record: Turn | Trajectory, left_out: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a record; a number that is none equals itself."""
    values = {each.name: getattr(record, each.name) for each in dataclasses.fields(record)}
    plain = {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if name not in left_out}


@pytest.mark.parametrize("path", OF_TURNS, ids=lambda path: path.__name__)
def test_every_path_writes_the_turns_that_a_rollout_writes(path: Callable[[], Trajectory]) -> None:
    expected, found = by_rollout(), path()
    assert len(expected.turns) > 2 and [turn.action_is_valid for turn in expected.turns[:3]] == [True, False, True]
    left_out = list(OF_TURNS[path])
    assert [fields_of(turn, left_out) for turn in found.turns] == [fields_of(t, left_out) for t in expected.turns]
    assert fields_of(found, list(OF_EPISODES)) == fields_of(expected, list(OF_EPISODES))


def test_what_differs_does_differ() -> None:
    """Each exception is needed."""
    expected = by_rollout()
    for path, reasons in OF_TURNS.items():
        found = path()
        for name in reasons:
            assert getattr(found.turns[0], name) != getattr(expected.turns[0], name), (path.__name__, name)
