"""One side of ``werewolf_vs_peers.py``, in a process of its own: it plays one game at each of its tables when told to.

Commands and answers are lines of JSON on standard input and output. The cheap players, ours and the peers', choose a
legal target with one random number and say one fixed sentence; they read nothing beyond whom they may name.
Our rule-based players read every line besides: they do more.
"""

from __future__ import annotations

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from sides import serve

SEATS = 7
SENTENCE = "I suspect player_3."


class Side(ABC):
    """Plays one game at each of many tables; counts answers."""

    answers = 0

    @abstractmethod
    def play(self, seed: int) -> int:
        """Play one game at every table and return how many ended with a winner."""


class InTurn(Side):
    """Our tables without a vector: every table takes one decision, then the next table its own, until all are over.

    Args:
        tables: How many.
        is_cheap: Whether the players are as cheap as the peers' are; otherwise they are rule-based.
    """

    def __init__(self, tables: int, is_cheap: bool = False) -> None:
        from turngym.envs.multiagent import Table, make_game, make_player
        from turngym.envs.multiagent.hosted import HostedTable

        games = [make_game("turngym/Werewolf-v0", num_seats=SEATS, tie="random") for _ in range(tables)]
        self.tables = [HostedTable(Table(game)) for game in games]
        self._players = [] if is_cheap else [[make_player("rule_based", game) for _ in range(SEATS)] for game in games]
        self._answer = self._cheap if is_cheap else self._by_rules
        self._draw = random.Random(0).random

    def play(self, seed: int) -> int:
        """Play one game at every table."""
        first = seed * 100_003
        for number, hosted in enumerate(self.tables, first):
            hosted.begin(number)
        for number, (hosted, players) in enumerate(zip(self.tables, self._players, strict=False), first):
            hosted.seat(players, number)  # the cheap players have nothing to remember
        running = self.tables
        while running:
            for hosted in running:
                for seat in hosted.table.pending:
                    hosted.answer(seat, self._answer(hosted, seat))
            running = [hosted for hosted in running if hosted.table.pending]
        self.answers += sum(len(hosted.table.actions) for hosted in self.tables)
        return sum(bool(hosted.table.winners()) for hosted in self.tables)

    def _by_rules(self, hosted: Any, seat: int) -> str:
        text: str = hosted.players[seat].act(hosted.table.views[seat])
        return text

    def _cheap(self, hosted: Any, seat: int) -> str:
        legal: tuple[str, ...] = hosted.table.game.legal_actions(seat)
        if legal == ("say",):
            return f"say {SENTENCE}"
        return legal[int(self._draw() * (len(legal) - (legal[-1] == "abstain")))]


class Vector(Side):
    """A vector of tables; its players sit inside, or answer the vector's questions from outside.

    Args:
        tables: How many.
        player: Name of the player at every seat.
        is_outside: Whether every answer goes through the vector's questions.
    """

    def __init__(self, tables: int, player: str, is_outside: bool = False) -> None:
        from turngym.envs.multiagent import TableVector, make_game, make_player

        def rules() -> Any:
            return make_game("turngym/Werewolf-v0", num_seats=SEATS, tie="random")

        policy = "outside" if is_outside else player
        self.vector = TableVector(rules, tables, policy, scripted={player: player}, auto_reset=False)
        game = rules()
        self._outside = [[make_player(player, game) for _ in range(SEATS)] for _ in range(tables * is_outside)]

    def play(self, seed: int) -> int:
        """Play one game at every table."""
        from turngym.seeding import stream

        self.vector.reset(seed=seed)
        asked = self.vector.pending()
        for index, players in enumerate(self._outside):
            for seat, player in enumerate(players):
                player.begin(self.vector.tables[index].views[seat], stream("outside", seed, index, seat))
        while asked:
            views = [self.vector.tables[request.table].views[request.seat] for request in asked]
            texts = [self._outside[r.table][r.seat].act(view) for r, view in zip(asked, views, strict=True)]
            self.vector.submit([(r.request_id, text) for r, text in zip(asked, texts, strict=True)])
            self.vector.drain()
            asked = self.vector.pending()
        self.answers += sum(len(table.actions) for table in self.vector.tables)
        return sum(bool(table.winners()) for table in self.vector.tables)


class SecretMafia(Side):
    """TextArena's game as its ``make`` returns it, or without the wrappers; one object per table, one round of talk.

    Args:
        tables: How many.
        is_bare: Whether to leave the wrappers out.
    """

    def __init__(self, tables: int, is_bare: bool = False) -> None:
        import textarena
        from textarena.envs.SecretMafia.env import SecretMafiaEnv

        if is_bare:
            self._tables: list[Any] = [SecretMafiaEnv(mafia_ratio=0.25, discussion_rounds=1) for _ in range(tables)]
        else:
            self._tables = [textarena.make("SecretMafia-v0", discussion_rounds=1) for _ in range(tables)]
        self._rules: dict[int, Any] = {id(table): _innermost(table) for table in self._tables}
        self._draw = random.Random(0).random

    def play(self, seed: int) -> int:
        """Play one game at every table."""
        for index, table in enumerate(self._tables):
            table.reset(num_players=SEATS, seed=seed * 100_003 + index)
        running = list(self._tables)
        while running:
            running = [table for table in running if not self._step(table)]
        return sum(bool(rules.state.rewards) for rules in self._rules.values())

    def _step(self, table: Any) -> bool:
        seat, _ = table.get_observation()
        rules = self._rules[id(table)]
        state, phase = rules.state.game_state, rules.phase.value
        if phase == "Day-Discussion":
            text = SENTENCE
        else:
            roles, living = state["player_roles"], state["alive_players"]
            legal = [other for other in living if other != seat]
            if phase == "Night-Mafia":
                legal = [other for other in living if roles[other] != "Mafia"]
            text = f"[{legal[int(self._draw() * len(legal))]}]"
        self.answers += 1
        is_over, _ = table.step(text)
        return bool(is_over)


class Kaggle(Side):
    """Kaggle's game, one environment per table, one round of talk, all votes at once, nothing revealed."""

    def __init__(self, tables: int) -> None:
        logging.disable(logging.CRITICAL)
        from kaggle_environments import make

        options = {
            "randomize_roles": True,
            "actTimeout": 3600,
            "runTimeout": 360_000,
            "night_elimination_reveal_level": "no_reveal",
            "day_exile_reveal_level": "no_reveal",
            "discussion_protocol": {"name": "RoundRobinDiscussion", "params": {"max_rounds": 1}},
            "day_voting_protocol": {"name": "SimultaneousMajority", "params": {}},
            "werewolf_night_vote_protocol": {"name": "SimultaneousMajority", "params": {}},
        }
        self._tables = [make("werewolf", configuration={**options, "seed": seed}) for seed in range(tables)]
        self._draw = random.Random(0).random

    def play(self, seed: int) -> int:
        """Play one game at every table."""
        for index, table in enumerate(self._tables):
            table.configuration.seed = seed * 1009 + index
            table.reset(SEATS)
        running = list(self._tables)
        while running:
            for table in running:
                table.step([self._answer(seat) if seat.status == "ACTIVE" else None for seat in table.state])
            running = [table for table in running if not table.done]
        return sum(any(seat.reward for seat in table.state) for table in self._tables)

    def _answer(self, seat: Any) -> dict[str, Any]:
        seen = seat.observation["raw_observation"]
        common = {
            "day": seen["day"],
            "phase": seen["game_state_phase"],
            "actor_id": seen["player_id"],
            "reasoning": "",
            "perceived_threat_level": "SAFE",
        }
        phase = seen["detailed_phase"]
        if phase == "DAY_CHAT_AWAIT":
            self.answers += 1
            return {"action_type": "ChatAction", "kwargs": {**common, "message": SENTENCE}}
        if phase == "DAY_VOTING_AWAIT":
            kind, legal = "VoteAction", [other for other in seen["alive_players"] if other != seen["player_id"]]
        else:
            data = [event["data"] for event in seen["new_player_event_views"] if isinstance(event["data"], dict)]
            lists = [found.get("valid_targets") or found.get("valid_candidates") for found in data]
            legal = next((found for found in reversed(lists) if found), [])
            kind = {"Werewolf": "VoteAction", "Doctor": "HealAction", "Seer": "InspectAction"}.get(seen["role"], "")
        if not (kind and legal):
            return {"action_type": "NoOpAction", "kwargs": common}
        self.answers += 1
        return {"action_type": kind, "kwargs": {**common, "target_id": legal[int(self._draw() * len(legal))]}}


def _innermost(table: Any) -> Any:
    while hasattr(table, "env"):
        table = table.env
    return table


MADE: dict[str, Callable[[int], Side]] = {
    "turngym, rule-based": InTurn,
    "turngym, cheap": lambda tables: InTurn(tables, is_cheap=True),
    "turngym vector, rule-based inside": lambda tables: Vector(tables, "rule_based"),
    "turngym vector, rule-based outside": lambda tables: Vector(tables, "rule_based", is_outside=True),
    "textarena, cheap": SecretMafia,
    "textarena without wrappers, cheap": lambda tables: SecretMafia(tables, is_bare=True),
    "kaggle, cheap": Kaggle,
}
"""Side by its name."""


class Desk:
    """Does what commands say with one side."""

    side: Side

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Prepare the side, or play a game at each of its tables."""
        if command["do"] == "prepare":
            self.side = MADE[command["side"]](command["tables"])
            return {}
        before, begin = self.side.answers, time.process_time()
        decided = self.side.play(command["seed"])
        spent = time.process_time() - begin
        return {"cpu": spent, "answers": self.side.answers - before, "decided": decided}


if __name__ == "__main__":
    serve(Desk().answer)
