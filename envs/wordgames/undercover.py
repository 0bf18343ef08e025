"""Undercover as a game for a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.envs.multiagent.game import Game, InvalidAction, Line
from turngym.envs.multiagent.speech import quoted
from turngym.envs.parsing.thinking import THINKING
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import first_object, read_choice
from turngym.envs.wordgames.words import features, pairs, partners, plain_speech, says
from turngym.errors import ConfigError
from turngym.options import Options as BaseOptions
from turngym.options import between
from turngym.types import JSONValue

CIVILIANS, UNDERCOVER = "civilians", "undercover"
SPEECH_LIMIT = 200
"""Characters of a speech that others read."""
_SAY = "say "
_READ = 10_000
_FIXED = ("words", "undercover")
_PLAYERS = "turngym.envs.wordgames.undercover_players"


class Undercover(Game):
    """Hidden-word game: all but one seat have the same word, one has a similar one, and no seat knows which it is.

    In each round the seats describe their words one after the other, may discuss, and vote at once; the seat with the
    most votes is out, nobody in a tie. The civilians win once the undercover is out, the undercover if only two are
    left or after ``rounds`` rounds. Nobody may say its own word, in a plural or a longer word either: such an answer is
    illegal. Speech is quoted as one line of plain ASCII. Rewards are 1 for winners and -1 for others at the end; a seat
    that forfeits is out. Words are pairs of our own list; splits have different pairs. The anchor is every line that
    the seat has read.

    >>> game = Undercover(num_seats=3, talk=False)
    >>> game.begin(np.random.default_rng(0), {"words": ["apple", "pear"], "undercover": 2})
    >>> for seat, text in enumerate(("It is red.", "It is round.", "It is green.")):
    ...     paid = game.commit({seat: game.read(seat, text)})
    >>> game.commit({0: "vote player_2", 1: "vote player_2", 2: "vote player_0"})
    [1.0, 1.0, -1.0]
    """

    name = "undercover"
    file_options = worded()
    players: ClassVar[Mapping[str, str]] = {
        "associate": f"{_PLAYERS}:Associate",
        "vague": f"{_PLAYERS}:Vague",
    }

    class Options(BaseOptions):
        num_seats: Annotated[int, between(3, 8)] = 5
        """Number of seats."""
        talk: bool = True
        """Whether the seats discuss before each vote."""
        rounds: Annotated[int, between(1, 10)] = 4
        """Rounds after which the undercover wins."""

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(self.options.num_seats)
        self._legal = tuple([f"vote {name}" for name in self.seats])
        self._meanings = {
            form: vote
            for seat, vote in enumerate(self._legal)
            for name in (f"player {seat}", str(seat))
            for form in (name, f"vote {name}", f"vote for {name}", f"i vote for {name}")
        }
        self._set_up(pairs()[0], 0)

    _constructor = __init__

    def _set_up(self, words: Sequence[str], undercover: int) -> None:
        self.words, self.undercover = tuple(words), undercover
        """The words of civilians and undercover, and the seat of the latter."""
        self.living, self.round, self.winner = list(self.everyone), 1, ""
        self._queue, self._phase = list(self.everyone), "describe"
        self.said: list[tuple[int, str]] = []
        """Seat and text of every speech."""
        self._told: list[Line] = []
        self._hits = [0, 0]

    def tell(self, to: Sequence[int], text: str) -> None:
        """Send a line to seats, and keep it."""
        super().tell(to, text)
        self._told.append(self.news[-1])

    def instructions(self, seat: int) -> str:
        """Return the rules, the same for all."""
        discussion = ", then discuss in one more sentence each," if self.options.talk else ","
        return (
            f"{self.num_seats} players have a secret word each. All words are the same but one, which is similar: its "
            "owner is the undercover, the others are civilians. You are not told which you are. In each round the "
            f"players describe their words in one sentence each{discussion} and vote at once. Who gets the most votes "
            "is out; in a tie nobody is. The civilians win as soon as the undercover is out. The undercover wins when "
            f"only two players are left, or after {self.options.rounds} rounds.\n"
            "You must never say your own word, nor a word that contains it. Others read at most "
            f"{SPEECH_LIMIT} characters.\n"
            'When you speak, answer with the sentence alone, or as {"say": "..."}. When you vote, answer with a name '
            "in brackets, such as [player_1]."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw words and the undercover; ``{"words": ["apple", "pear"], "undercover": 2}`` fixes them."""
        self.require_known(options, _FIXED)
        pair = pairs()[int(generator.integers(len(pairs())))]
        drawn = pair[:: 1 if generator.random() < 0.5 else -1], int(generator.integers(self.num_seats))
        words, undercover = (options.get(key, each) for key, each in zip(_FIXED, drawn, strict=True))
        if type(undercover) is not int or undercover not in self.everyone:
            raise ConfigError(
                f"undercover of {self.name} must be a seat in 0-{self.num_seats - 1}, got {undercover!r:.80}."
            )
        words = tuple(words) if isinstance(words, list | tuple) else words
        if words not in pairs() and words not in [pair[::-1] for pair in pairs()]:
            raise ConfigError(f"words of {self.name} must be a pair of its list, got {words!r:.80}.")
        self.news.clear()
        self._set_up(words, undercover)
        for seat in self.everyone:
            self.tell((seat,), f'You are {self.seats[seat]}. Your word is "{self.word(seat)}".')

    def word(self, seat: int) -> str:
        """Return the word of a seat."""
        return self.words[seat == self.undercover]

    def content(self) -> str:
        """Return the pair of words, by which games are split."""
        return " ".join(sorted(self.words))

    # Decisions.

    def phase(self) -> str:
        """Return ``"describe"``, ``"discuss"``, ``"vote"`` or ``"over"``."""
        return "over" if self.winner else self._phase

    def is_speech(self, seat: int) -> bool:
        """Return whether a seat describes or discusses."""
        return self._phase != "vote"

    def asked(self) -> tuple[int, ...]:
        """Return the next seat that speaks, or all that vote."""
        if self.winner:
            return ()
        return tuple(self.living) if self._phase == "vote" else (self._queue[0],)

    def prompt(self, seat: int) -> str:
        """Return the question."""
        question = {
            "describe": "Describe your word without saying it.",
            "discuss": "Who has the other word? Say something without saying your word.",
            "vote": f"Vote for one of {', '.join([self.seats[other] for other in self.living if other != seat])}.",
        }
        return f'Round {self.round} of {self.options.rounds}, your word is "{self.word(seat)}". {question[self._phase]}'

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the votes; nothing where any words will do."""
        if self._phase != "vote":
            return ()
        return tuple([self._legal[other] for other in self.living if other != seat])

    def read(self, seat: int, text: str) -> str:
        """Return the vote that an answer names, or ``"say ..."`` with what was said.

        Raises:
            InvalidAction: It says the seat's own word, says nothing, or is not a vote for another living seat.
        """
        if self._phase == "vote":
            return self._vote(seat, text)
        text = THINKING.without(text)[:_READ]
        found = first_object(text) if text.lstrip().startswith("{") else None
        speech = found.get("say") if found else None
        said = plain_speech(speech if isinstance(speech, str) else text.removeprefix(_SAY), SPEECH_LIMIT)
        if not any(letter.isalpha() for letter in said):
            raise InvalidAction("Your answer has no words: say something.", "unreadable")
        if says(said, self.word(seat)):
            raise InvalidAction("You must not say your own word: describe it in other words.")
        return f"{_SAY}{said}"

    def _vote(self, seat: int, text: str) -> str:
        vote = read_choice(text, self._meanings)
        if vote not in self.legal_actions(seat):
            names = ", ".join([self.seats[other] for other in self.living if other != seat])
            raise InvalidAction(f"You cannot {vote}: name one of {names}.")
        return vote

    def default(self, seat: int) -> str:
        """Return nothing: a seat that has forfeited is out."""
        return ""

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Deliver what was said, or count the votes."""
        if self._phase == "vote":
            return self._count({seat: vote for seat, vote in actions.items() if seat in self.living})
        ((seat, action),) = actions.items()
        self._queue.pop(0)
        if seat in self.living:
            self.said.append((seat, action.removeprefix(_SAY)))
            self.tell(self.everyone, quoted(self.seats[seat], self.said[-1][1]))
        if not self._queue:
            is_talk = self._phase == "describe" and self.options.talk
            self._phase = "discuss" if is_talk else "vote"
            self._queue = self._order() if is_talk else []
        return [0.0] * self.num_seats

    def _order(self) -> list[int]:
        """Return the living seats in the order in which they speak; another one begins in each round."""
        first = (self.round - 1) % len(self.living)
        return self.living[first:] + self.living[:first]

    def _count(self, votes: Mapping[int, str]) -> Sequence[float]:
        targets = {seat: self._legal.index(vote) for seat, vote in votes.items()}
        shown = ", ".join([f"{self.seats[seat]} for {self.seats[target]}" for seat, target in targets.items()])
        self._hits[0] += sum(seat != self.undercover for seat in targets)
        self._hits[1] += sum(seat != self.undercover == target for seat, target in targets.items())
        counts = Counter([target for target in targets.values() if target in self.living]).most_common(2)
        is_tie = not counts or (len(counts) == 2 and counts[0][1] == counts[1][1])
        result = "Nobody is out." if is_tie else f"{self.seats[counts[0][0]]} is out."
        self.tell(self.everyone, f"Votes: {shown}. {result}")
        if not is_tie:
            self.living.remove(counts[0][0])
        self._decide()
        self.round += 1
        if not self.winner and self.round > self.options.rounds:
            self._end(UNDERCOVER)
        self._phase, self._queue = "describe", self._order()
        return self._rewards()

    def _decide(self) -> None:
        if self.undercover not in self.living:
            self._end(CIVILIANS)
        elif len(self.living) <= 2:
            self._end(UNDERCOVER)

    def _end(self, winner: str) -> None:
        self.winner = winner
        spy = self.seats[self.undercover]
        words = f'The civilians had "{self.words[0]}", {spy} had "{self.words[1]}"'
        self.tell(
            self.everyone,
            f"The game is over. {words}. {'The civilians win' if winner == CIVILIANS else f'{spy} wins'}.",
        )

    def _rewards(self) -> list[float]:
        """Return 1 for winners and -1 for others at the end; seats that have forfeited were paid before."""
        if not self.winner:
            return [0.0] * self.num_seats
        won = self.winners()
        return [0.0 if seat in self.forfeited else 1.0 if seat in won else -1.0 for seat in self.everyone]

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """Put seats out of the game, which may decide it."""
        for seat in seats:
            self.tell(self.everyone, f"{self.seats[seat]} gave no legal action and is out.")
            self.living.remove(seat)
        self._decide()
        return [-1.0 if seat in seats else paid for seat, paid in enumerate(self._rewards())]

    # What is known about the game.

    def team(self, seat: int) -> str:
        """Return ``"undercover"`` or ``"civilians"``, which no seat knows before the end."""
        return UNDERCOVER if seat == self.undercover else CIVILIANS

    def anchor(self, seat: int) -> str:
        """Return every line that the seat has read."""
        return "\n".join([line.text for line in self._told if seat in line.to])

    def progress(self, seat: int) -> float:
        """Return the share of the rounds that are over."""
        return 1.0 if self.winner else (self.round - 1) / self.options.rounds

    def winners(self) -> tuple[int, ...]:
        """Return the seats of the side that has won, those that are out too."""
        return tuple([seat for seat in self.everyone if self.team(seat) == self.winner])

    def metrics(self) -> dict[str, float]:
        """Return whether civilians won, in how many rounds, and how many of their votes were for the undercover."""
        return {
            "civilians_win": float(self.winner == CIVILIANS),
            "rounds": float(min(self.round - 1, self.options.rounds)),
            "civilian_votes": float(self._hits[0]),
            "civilian_votes_on_undercover": float(self._hits[1]),
        }

    def state(self) -> JSONValue:
        """Return words, seats and speech."""
        return {
            "words": list(self.words),
            "undercover": self.undercover,
            "living": list(self.living),
            "round": self.round,
            "winner": self.winner,
            "queue": list(self._queue),
            "phase": self._phase,
            "said": [list(each) for each in self.said],
            "told": [[list(line.to), line.text] for line in self._told],
            "hits": list(self._hits),
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        words = tuple(state["words"])
        if not set(words) <= features().keys() or len(words) != 2 or state["undercover"] not in self.everyone:
            raise ValueError(f"the words {words!s:.80} and the undercover {state['undercover']!r}")
        if state["phase"] not in ("describe", "discuss", "vote") or state["winner"] not in ("", CIVILIANS, UNDERCOVER):
            raise ValueError(f"the phase {state['phase']!r} and the winner {state['winner']!r}")
        if not {*state["living"], *state["queue"]} <= set(self.everyone):
            raise ValueError(f"the living {state['living']!s:.80}")
        self.words, self.undercover, self.living = words, state["undercover"], list(state["living"])
        self.round, self.winner, self._phase = state["round"], state["winner"], state["phase"]
        self._queue, self._hits = list(state["queue"]), list(state["hits"])
        self.said = [(seat, text) for seat, text in state["said"]]
        self._told = [Line(tuple(to), text) for to, text in state["told"]]

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Give another seat the other word, or the other seats another word, as it fits what was said."""
        if self.winner:
            return False
        own, worlds = self.word(seat), []
        for other in partners(own):
            speakers = {one for one, text in self.said if says(text, other)}
            for spy in self.living:
                holders = set(self.everyone) - {seat} if spy == seat else {spy}
                if not holders & speakers and not (spy != seat and self._has_said(own, {seat, spy})):
                    worlds.append(((other, own) if spy == seat else (own, other), spy))
        if not worlds:
            return False
        before = self.words, self.undercover
        self.words, self.undercover = worlds[int(generator.integers(len(worlds)))]
        self._told = [
            Line(line.to, f'You are {self.seats[at]}. Your word is "{self.word(at)}".') if at < self.num_seats else line
            for at, line in enumerate(self._told)
        ]
        return (self.words, self.undercover) != before

    def _has_said(self, word: str, but: set[int]) -> bool:
        """Return whether one of the other seats has said a word."""
        return any(says(text, word) for one, text in self.said if one not in but)
