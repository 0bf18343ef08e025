"""What an agent can know: what callers said, what tools showed, what was agreed and done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turngym.envs.service.domain import Act, Domain, Result, Told, key_of
from turngym.envs.service.lines import Said
from turngym.envs.service.tables import Tables

NEW = ("request", "another")
"""Acts that begin a wish which has nothing to do with an earlier one."""


class View:
    """Knowledge of the agent.

    Args:
        domain: The domain.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self.told: dict[str, Any] = {}
        """Slot -> what the caller said; None where it is not known."""
        self.doubt: set[str] = set()
        """Slots whose values led nowhere."""
        self.known = Tables({table: {} for table in domain.schema})
        self.customer: int | None = None
        self.listed: list[int] = []
        self.kind = ""
        """Kind of the open wish; empty if none is open."""
        self.agreed: dict[str, Act] = {}
        """Proposals with a yes that are not yet carried out."""
        self.due: list[Told] = []
        """Facts that the policy wants told."""
        self.tells: list[Told] = []
        self.is_all = False
        self.facts: dict[str, str] = {}
        """What is known, as texts by what they are about."""

    def hear(self, act: Act | None, said: Sequence[Said]) -> None:
        """Take in what the caller said in reply to an act, the first words to None."""
        for each in said:
            getattr(self, f"_hear_{each.act}", _nothing)(act, each)
            about = each.act if act is None else f"{act.kind} {key_of(act.name, act.arguments)}"
            if each.act != "confused":
                self.facts[about] = each.text

    def _hear_request(self, act: Act | None, said: Said) -> None:
        values = dict(said.values)
        self.kind = str(values.pop("kind"))
        if said.act in NEW:
            self.told = {slot: value for slot, value in self.told.items() if slot in (*self._domain.identity, "holder")}
        self.told |= values

    _hear_another = _hear_instead = _hear_request

    def _hear_inform(self, act: Act | None, said: Said) -> None:
        self.told |= said.values
        self.doubt -= said.values.keys()

    _hear_no = _hear_inform

    def _hear_unknown(self, act: Act | None, said: Said) -> None:
        self.told[str(said.values["slot"])] = None

    def _hear_yes(self, act: Act | None, said: Said) -> None:
        if act is not None:
            self.agreed[key_of(act.name, act.arguments)] = act
            self.kind = ""

    def _hear_decline(self, act: Act | None, said: Said) -> None:
        self.kind = ""

    _hear_accept = _hear_decline

    def _hear_thanks(self, act: Act | None, said: Said) -> None:
        if act is not None and self.kind and self._domain.kinds[self.kind].answer == act.name:
            self.kind = ""

    def _hear_nothing(self, act: Act | None, said: Said) -> None:
        self.is_all = True

    def wish(self) -> dict[str, Any]:
        """Return the open wish as far as it is known; an unknown reference is found by its description."""
        wish = {**self.told, "kind": self.kind}
        if wish.get(self._domain.reference, 0) is None:
            wish[self._domain.reference] = self._domain.found(self.known, wish)
        return wish

    def read(self, act: Act, result: Result) -> None:
        """Take in the result of a tool."""
        for table, record in result.seen:
            self.known.put(table, record)
        self.facts[key_of(act.name, act.arguments)] = result.text
        if act.name == self._domain.reads[0].__name__:
            if result.seen:
                self.customer = int(result.seen[0][1]["id"])
            else:
                self.doubt |= act.arguments.keys()
        elif act.name == self._domain.reads[1].__name__:
            self.listed = [int(text) for text in result.text.partition(" ")[2].split(", ") if text.isdigit()]
        elif not result.seen and self._domain.reference in act.arguments:
            self.doubt.add(self._domain.reference)


def _nothing(act: Act | None, said: Said) -> None:
    """Ignore an act that changes no knowledge."""
