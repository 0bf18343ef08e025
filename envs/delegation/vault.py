"""Vault: find the digits of a code in long pages, one page for each digit."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Annotated

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.parsing.calls import Calls
from turngym.envs.settings import worded
from turngym.options import OptionError, between
from turngym.types import JSONValue

TITLES = ("red", "blue", "green", "white", "black", "pink", "grey", "gold")
LOOK, OPEN = "look", "open"
CALLS = Calls(
    {LOOK: "page", OPEN: "code"},
    {"tags": "write <look>page</look> to read a page or <open>digits</open> to open the vault"},
)
_RULES = """A vault opens with a code of {keys} digits. Each is in a line of a page of the archive. Write one of:
<look>page</look>
<open>digits in order</open>
There is one attempt to open it. You have {turns} turns."""


class Vault(TextEnv[str]):
    """Open a vault with a code whose digits are in lines of long pages.

    The reward is 1 for the right code; the episode ends with the first attempt. The anchor is the question and the
    pages that were read.

    >>> env = Vault(lines=3)
    >>> question, info = env.reset(seed=0)
    >>> question
    'Code: green a, red a.'
    >>> env.step("<look>green</look>")[0], env.step("<open>90</open>")[:3]
    ('green: a 5 b 6 c 9', ('The vault stays shut.', 0.0, True))
    """

    class Options(TextEnv.Options):
        keys: Annotated[int, between(1, 6)] = 2
        """Digits of the code, each on its own page."""
        pages: Annotated[int, between(1, len(TITLES))] = 4
        """Pages of the archive."""
        lines: Annotated[int, between(1, 26)] = 12
        """Lines of a page, each with a letter and a digit."""
        max_turns: MaxTurns = 12

        def check(self) -> None:
            if self.keys > self.pages:
                raise OptionError("keys", f"must be at most pages, which is {self.pages}, got {self.keys}.")

    options: Options
    file_options = worded()
    finds_action = True

    def setup(self) -> None:
        self.instructions = _RULES.format(keys=self.options.keys, turns=self.max_turns)

    def initial_state(self, generator: np.random.Generator) -> JSONValue:
        chosen = self.options
        pages = generator.permutation(chosen.pages)[: chosen.keys].tolist()
        lines = generator.integers(chosen.lines, size=chosen.keys).tolist()
        digits = generator.integers(10, size=(chosen.pages, chosen.lines)).tolist()
        return {"digits": digits, "code": list(map(list, zip(pages, lines, strict=True))), "read": []}

    def parts(self) -> list[str]:
        """Return the page and the line of each digit of the code, such as ``"red c"``."""
        return [f"{TITLES[page]} {ascii_lowercase[line]}" for page, line in self.state["code"]]

    def digit(self, part: str) -> str:
        """Return the digit of a page and a line that :meth:`parts` names; empty for any other text."""
        title, _, line = part.partition(" ")
        places = [TITLES.index(title) if title in TITLES else -1, ascii_lowercase.find(line) if line else -1]
        is_there = 0 <= places[0] < self.options.pages and 0 <= places[1] < self.options.lines and len(line) == 1
        return str(self.state["digits"][places[0]][places[1]]) if is_there else ""

    def observation(self) -> str:
        return f"Code: {', '.join(self.parts())}."

    def apply_action(self, action: str) -> Outcome[str]:
        call = CALLS.read(action, "tags")
        content = " ".join(call.content.lower().split())
        if call.tool == LOOK and content in TITLES[: self.options.pages]:
            return Outcome(self._page(TITLES.index(content)))
        if call.tool == LOOK:
            return Outcome(f"Pages are {', '.join(TITLES[: self.options.pages])}.", action_is_valid=False)
        if call.tool == OPEN:
            is_right = content.replace(" ", "") == "".join(map(self.digit, self.parts()))
            return Outcome("The vault opens." if is_right else "The vault stays shut.", float(is_right), True, is_right)
        return Outcome(f"That is no action: {call.problem}.", action_is_valid=False)

    def _page(self, number: int) -> str:
        if number not in self.state["read"]:
            self.state["read"].append(number)
        lines = zip(ascii_lowercase, self.state["digits"][number], strict=False)
        return f"{TITLES[number]}: {' '.join(f'{letter} {digit}' for letter, digit in lines)}"

    def anchor(self) -> str:
        return (
            f"{self.observation()} Read: {' '.join([TITLES[page] for page in sorted(self.state['read'])]) or 'none'}."
        )

    def load_state(self, state: JSONValue) -> None:
        chosen, digits, code, read = self.options, state["digits"], state["code"], state["read"]
        is_sound = [len(page) for page in digits] == [chosen.lines] * chosen.pages and len(code) == chosen.keys
        numbers = [(digit, 10) for page in digits for digit in page] + [(page, chosen.pages) for page in read]
        numbers += [pair for page, line in code for pair in ((page, chosen.pages), (line, chosen.lines))]
        if not is_sound or not all(type(number) is int and 0 <= number < limit for number, limit in numbers):
            raise ValueError(f"the pages {digits!s:.80}, the code {code!s:.80} and the pages read {read!s:.80}")
        self.state = {"digits": digits, "code": code, "read": read}

    def resample_hidden(self) -> bool:
        unread = [page for page in range(self.options.pages) if page not in self.state["read"]]
        for page in unread:
            self.state["digits"][page] = self.np_random.integers(10, size=self.options.lines).tolist()
        return bool(unread)

    def expert_action(self) -> str:
        """Return the next page with a digit of the code, and then the code."""
        missing = [page for page, _ in self.state["code"] if page not in self.state["read"]]
        if missing:
            return CALLS.write(LOOK, TITLES[missing[0]], "tags")
        return CALLS.write(OPEN, "".join(map(self.digit, self.parts())), "tags")
