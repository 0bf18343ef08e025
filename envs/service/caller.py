"""The scripted caller: every reply is a function of the caller's record and the acts so far, with no language model."""

from __future__ import annotations

from collections import Counter
from typing import Any

from turngym.envs.service.domain import Act, Domain, Wish, key_of
from turngym.envs.service.lines import Said
from turngym.envs.service.script import HOLDER, PRIVATE, UNKNOWN, WRONG, Script
from turngym.envs.service.tables import Tables

MORE = "more"
"""Slot by which the agent asks for further wishes."""


class CallerState:
    """Where a caller is in the script.

    Args:
        domain: The domain.
        script: The instance.
    """

    def __init__(self, domain: Domain, script: Script) -> None:
        self._domain, self._script, self._record = domain, script, script.caller
        self._tables = Tables(script.rows)
        self.chain = self.place = 0
        self.is_open = True
        self.said_all = self.has_left = False
        self._asked: Counter[str] = Counter()
        self._heard: set[str] = set()
        self._useless = 0

    @property
    def wish(self) -> Wish:
        """The wish that is open or was settled last."""
        return self._record.chains[self.chain][self.place]

    def opening(self) -> list[Said]:
        """Return the first words."""
        return [self._request("request")]

    def _request(self, act: str) -> Said:
        wish, kind = self.wish, self._domain.kinds[self.wish["kind"]]
        values = {"kind": wish["kind"]}
        name = self._domain.reference
        if self._record.level > 0 and name in kind.slots and self._mode(name) not in (UNKNOWN, WRONG):
            values[name] = wish[name]
        if self._record.level > 1:
            values |= {slot: wish[slot] for slot in kind.slots if slot != name}
        return Said(act, values)

    def reply(self, act: Act) -> list[Said]:
        """Return what the caller says to a speech act; hangs up after too many useless ones in a row."""
        said = getattr(self, f"_{act.kind}")(act)
        self._useless = self._useless + 1 if said[-1].act == "confused" else 0
        if self._useless >= self._record.patience:
            self.has_left = True
            return [Said("leave")]
        return list(said)

    def _ask(self, act: Act) -> list[Said]:
        slot = act.name
        if slot == MORE:
            return self._more()
        if slot == HOLDER:
            return self._once(slot, Said("inform", {slot: "yes" if self._record.is_holder else "no"}))
        value = self._value(slot)
        if value is None:
            return [Said("confused")]
        name, mode = self._named(slot), self._mode(slot)
        self._asked[name] += 1
        if mode == UNKNOWN:
            return self._once(slot, Said("unknown", {"slot": slot}))
        if self._asked[name] == 1 and mode == PRIVATE:
            return [Said("why", {"slot": slot})]
        if self._asked[name] == 1 and mode == WRONG:
            return [Said("inform", {slot: self._record.errors[name]})]
        is_repeated = self._asked[name] > 2
        return [Said("inform", {slot: value}), *([Said("confused")] if is_repeated else [])]

    def _once(self, slot: str, said: Said) -> list[Said]:
        self._asked[slot] += 1
        return [said, *([Said("confused")] if self._asked[slot] > 2 else [])]

    def _named(self, slot: str) -> str:
        return f"{slot} {self.chain}" if slot not in self._record.slots else slot

    def _mode(self, slot: str) -> str:
        return self._record.modes.get(self._named(slot), "")

    def _value(self, slot: str) -> Any:
        if slot in self._record.slots:
            return self._record.slots[slot]
        return self.wish.get(slot) if self.is_open and self.wish["kind"] != "other" else None

    def _more(self) -> list[Said]:
        if self.is_open:
            return [Said("confused")]
        if self.chain + 1 < len(self._record.chains):
            self.chain, self.place, self.is_open = self.chain + 1, 0, True
            return [self._request("another")]
        if self.said_all:
            return [Said("nothing"), Said("confused")]
        self.said_all = True
        return [Said("nothing")]

    def _tell(self, act: Act) -> list[Said]:
        key = f"{self.chain} {act.name}"
        is_new = key not in self._heard
        self._heard.add(key)
        if self.is_open and self._domain.kinds[self.wish["kind"]].answer == act.name:
            self.is_open = False
        return [Said("thanks" if is_new else "confused")]

    def _propose(self, act: Act) -> list[Said]:
        if not self.is_open or self._domain.kinds[self.wish["kind"]].tool != act.name:
            return [Said("confused")]
        slot = self._domain.differs(self._tables, self.wish, act.arguments)
        if slot:
            is_unknown = slot == self._domain.reference and self._mode(slot) == UNKNOWN
            shown = self._domain.description if is_unknown else slot
            key = key_of(act.name, act.arguments)
            is_repeated = key in self._heard
            self._heard.add(key)
            return [Said("no", {shown: self.wish[shown]}), *([Said("confused")] if is_repeated else [])]
        if act.arguments.get("refund", self.wish["limit"]) < self.wish["limit"]:
            return [Said("decline"), *self._give_up()]
        self.is_open = False
        return [Said("yes")]

    def _refuse(self, act: Act) -> list[Said]:
        if not self.is_open:
            return [Said("confused")]
        name = f"refused {self.chain} {self.place}"
        self._asked[name] += 1
        if self._record.claims[self.chain] and self._asked[name] == 1:
            return [Said("claim")]
        if not self._record.is_holder:
            self.is_open = False
            return [Said("accept")]
        return [Said("accept"), *self._give_up()]

    def _give_up(self) -> list[Said]:
        """Turn to what is wanted instead; the wish is settled if that is nothing."""
        if self.place + 1 < len(self._record.chains[self.chain]):
            self.place += 1
            return [self._request("instead")]
        self.is_open = False
        return []
