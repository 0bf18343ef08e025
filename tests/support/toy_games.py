"""Three small games between seats that between them have everything: a secret, talk, chance, votes, elimination."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.errors import ConfigError
from turngym.types import JSONValue


def expect(text: str, legal: Sequence[str]) -> str:
    """Read one of the legal actions."""
    action = text.strip().lower()
    if action in legal:
        return action
    if not action:
        raise InvalidAction("No action was found.", "unreadable")
    raise InvalidAction("That is not one of the legal actions.")


def refuse_options(options: Mapping[str, Any], known: Sequence[str] = ()) -> None:
    for key in options:
        if key not in known:
            raise ConfigError(f"no option {key!r}")


class Secret(Game):
    """One seat knows a digit and says anything; the other guesses. One after the other, twice."""

    name = "secret"
    players: ClassVar[Mapping[str, str]] = {"reader": "toy_games:Reader", "honest": "toy_games:Honest"}

    def __init__(self, digits: int = 4) -> None:
        super().__init__(2)
        self.digits = digits
        self.turn = self.hidden = 0
        self.said: list[str] = []

    def instructions(self, seat: int) -> str:
        return "Say anything about your digit." if seat == 0 else "Guess the digit of the other seat: a number."

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        refuse_options(options, ("digit",))
        self.hidden = int(options.get("digit", generator.integers(self.digits)))
        self.turn, self.said = 0, []
        self.tell([0], f"Your digit is {self.hidden}.")
        self.tell([0, 1], f"The digit is below {self.digits}.")

    def asked(self) -> tuple[int, ...]:
        return () if self.turn == 4 else (self.turn % 2,)

    def prompt(self, seat: int) -> str:
        return "What do you say?" if seat == 0 else "Which digit is it?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        return () if seat == 0 else tuple(map(str, range(self.digits)))

    def read(self, seat: int, text: str) -> str:
        return " ".join(text.split())[:100] if seat == 0 else expect(text, self.legal_actions(seat))

    def default(self, seat: int) -> str:
        return "" if seat == 0 else "0"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        ((seat, action),) = actions.items()
        self.turn += 1
        if seat == 0:
            self.tell([0, 1], f"player_0 says: {action}")
            self.said.append(action)
            return 0.0, 0.0
        hit = 0.5 * (int(action) == self.hidden)
        self.said.append(action)
        self.tell([0, 1], f"player_1 guesses {action}.")
        if self.turn == 4:
            self.tell([0, 1], f"The digit was {self.hidden}.")
        return hit, hit

    def anchor(self, seat: int) -> str:
        return f"{self.hidden if seat == 0 else '?'} {self.said}"

    def winners(self) -> tuple[int, ...]:
        return (0, 1) if self.turn == 4 and self.said[3] == str(self.hidden) else ()

    def progress(self, seat: int) -> float:
        return self.turn / 4

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        if seat == 0 or self.turn == 4:
            return False
        self.hidden = (self.hidden + 1 + int(generator.integers(self.digits - 1))) % self.digits
        return True

    def state(self) -> JSONValue:
        return {"turn": self.turn, "hidden": self.hidden, "said": self.said}

    def load(self, state: JSONValue) -> None:
        self.turn, self.hidden, self.said = state["turn"], state["hidden"], list(state["said"])


class Coins(Game):
    """All seats name heads or tails at once; those with the side that a drawn coin shows earn a point."""

    name = "coins"
    is_simultaneous = True

    def __init__(self, num_seats: int = 3, rounds: int = 3) -> None:
        super().__init__(num_seats)
        self.rounds, self.score_range = rounds, (0.0, float(rounds))
        self.coins: list[int] = []
        self.points = [0] * num_seats

    def instructions(self, seat: int) -> str:
        return "Name heads or tails."

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        refuse_options(options)
        self.generator, self.coins, self.points = generator, [], [0] * self.num_seats
        self.tell(self.everyone, f"There are {self.rounds} coins.")

    def asked(self) -> tuple[int, ...]:
        return () if len(self.coins) == self.rounds else self.everyone

    def prompt(self, seat: int) -> str:
        return "heads or tails?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        return "heads", "tails"

    def read(self, seat: int, text: str) -> str:
        return expect(text, ("heads", "tails"))

    def default(self, seat: int) -> str:
        return "heads"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        coin = int(self.generator.integers(2))
        self.coins.append(coin)
        hits = [float(action == ("heads", "tails")[coin]) for action in actions.values()]
        self.points = [total + int(hit) for total, hit in zip(self.points, hits, strict=True)]
        named = ", ".join(f"player_{seat} {action}" for seat, action in actions.items())
        self.tell(self.everyone, f"The coin shows {('heads', 'tails')[coin]}: {named}.")
        return hits

    def anchor(self, seat: int) -> str:
        return f"{self.coins} {self.points}"

    def winners(self) -> tuple[int, ...]:
        if self.asked():
            return ()
        return tuple(seat for seat in self.everyone if self.points[seat] == max(self.points))

    def progress(self, seat: int) -> float:
        return len(self.coins) / self.rounds

    def score(self, seat: int) -> float:
        return float(self.points[seat])

    def metrics(self) -> dict[str, float]:
        return {"heads": float(self.coins.count(0))}

    def state(self) -> JSONValue:
        return {"coins": self.coins, "points": self.points}

    def load(self, state: JSONValue) -> None:
        self.coins, self.points = list(state["coins"]), list(state["points"])


class Spies(Game):
    """One of the seats is a spy: by night it removes a seat, by day all vote at once. Roles, teams, elimination."""

    name = "spies"

    def __init__(self, num_seats: int = 5, talk: bool = True) -> None:
        super().__init__(num_seats)
        self.talk = talk
        self.spy, self.alive, self.stage, self.speaker = 0, list(self.everyone), "night", 0

    def instructions(self, seat: int) -> str:
        return "By night: remove player_X. By day: talk, then vote player_X."

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        refuse_options(options, ("spy",))
        self.spy = int(options.get("spy", generator.integers(self.num_seats)))
        self.alive, self.stage, self.speaker = list(self.everyone), "night", 0
        for seat in self.everyone:
            self.tell([seat], f"You are player_{seat}, a {self.role(seat)}.")
        self.tell(self.everyone, "It is night.")

    def role(self, seat: int) -> str:
        return "spy" if seat == self.spy else "guest"

    def phase(self) -> str:
        return self.stage

    def asked(self) -> tuple[int, ...]:
        if self.stage == "night":
            return (self.spy,)
        if self.stage == "talk":
            return (self.alive[self.speaker],)
        return tuple(self.alive) if self.stage == "vote" else ()

    def prompt(self, seat: int) -> str:
        return f"{self.stage}: " + (", ".join(self.legal_actions(seat)) or "say something")

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        if self.stage == "talk":
            return ()
        verb = "remove" if self.stage == "night" else "vote"
        return tuple(f"{verb} player_{other}" for other in self.alive if other != seat)

    def read(self, seat: int, text: str) -> str:
        return " ".join(text.split())[:100] if self.stage == "talk" else expect(text, self.legal_actions(seat))

    def default(self, seat: int) -> str:
        return "" if self.stage == "talk" else self.legal_actions(seat)[0]

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        getattr(self, f"_{self.stage}")(actions)
        is_caught = self.spy not in self.alive
        if not is_caught and len(self.alive) > 2:
            return [0.0] * self.num_seats
        self.stage = "over"
        self.tell(self.everyone, f"The spy was player_{self.spy}.")
        return [1.0 if (seat == self.spy) != is_caught else -1.0 for seat in self.everyone]

    def _night(self, actions: Mapping[int, str]) -> None:
        removed = int(actions[self.spy].rpartition("_")[2])
        self.alive.remove(removed)
        self.stage, self.speaker = ("talk" if self.talk else "vote"), 0
        self.tell([self.spy], "You did it unseen.")
        self.tell(self.everyone, f"player_{removed} was removed.")

    def _talk(self, actions: Mapping[int, str]) -> None:
        ((seat, words),) = actions.items()
        self.tell(self.everyone, f"player_{seat}: {words}")
        self.speaker += 1
        if self.speaker == len(self.alive):
            self.stage = "vote"

    def _vote(self, actions: Mapping[int, str]) -> None:
        tally = Counter(int(action.rpartition("_")[2]) for action in actions.values())
        (one, most), *others = tally.most_common(2)
        removed = None if others and others[0][1] == most else one
        self.tell(self.everyone, f"Votes: {sorted(actions.items())}.")
        if removed is not None:
            self.alive.remove(removed)
        self.tell(self.everyone, f"Removed: {removed}. It is night.")
        self.stage = "night"

    def anchor(self, seat: int) -> str:
        return f"{self.role(seat)} {self.alive} {self.stage} {self.speaker}"

    def winners(self) -> tuple[int, ...]:
        if self.stage != "over":
            return ()
        if self.spy in self.alive:
            return (self.spy,)
        return tuple(seat for seat in self.everyone if seat != self.spy)

    def progress(self, seat: int) -> float:
        return 1.0 if self.stage == "over" else 1 - len(self.alive) / self.num_seats

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Another living guest is the spy instead, where that changes nothing that the seat has read."""
        others = [other for other in self.alive if other not in (seat, self.spy)]
        if seat == self.spy or self.stage in ("over", "night") or not others:
            return False
        self.spy = others[int(generator.integers(len(others)))]
        return True

    def state(self) -> JSONValue:
        return {"spy": self.spy, "alive": self.alive, "stage": self.stage, "speaker": self.speaker}

    def load(self, state: JSONValue) -> None:
        self.spy, self.alive = state["spy"], list(state["alive"])
        self.stage, self.speaker = state["stage"], state["speaker"]


class Honest(Player):
    """Says its digit."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        return view.lines[0]


class Reader(Player):
    """Says its digit, or guesses the last digit that it reads; remembers its guesses; draws where it reads none."""

    name = "reader"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        self.generator, self.guesses = generator, [""]

    def act(self, view: SeatView) -> str:
        if not view.legal_actions:
            return view.lines[0]
        found = [letter for letter in view.new_lines[-1] if letter in view.legal_actions]
        self.guesses.append(found[-1] if found else str(int(self.generator.integers(2))))
        return self.guesses[-1]

    def state(self) -> JSONValue:
        return self.guesses

    def load(self, state: JSONValue) -> None:
        self.guesses = list(state)
