"""One episode: the tables, the keys that were given out, and what was made."""

from __future__ import annotations

import json
from collections.abc import Mapping

from turngym.envs.apps.dialect import Act
from turngym.envs.apps.effects import SCHEMA, Refused, paged
from turngym.envs.apps.functions import FUNCTIONS, LIST_ACCOUNTS, SIGN_IN
from turngym.envs.apps.part import Made
from turngym.envs.parsing.calls import harmless
from turngym.envs.service.tables import Rows, Tables


class Session:
    """Accounts in use.

    Args:
        rows: Records at the start.
        keys: Account -> key, which signing in returns.
    """

    def __init__(self, rows: Rows, keys: Mapping[int, str]) -> None:
        self.tables = Tables(rows)
        self._keys = keys
        self._accounts: dict[str, int] = {}
        self._made: dict[str, int] = {}

    def perform(self, act: Act) -> str:
        """Carry out a call and return what the agent reads."""
        try:
            return harmless(self.perform_strictly(act))
        except Refused as error:
            return f"Error: {harmless(str(error))}."

    def perform_strictly(self, act: Act) -> str:
        """Carry out a call.

        Raises:
            Refused: It cannot be carried out.
        """
        given = self.resolved(act).arguments
        if act.name == LIST_ACCOUNTS:
            return paged(self.tables.where("accounts"), SCHEMA["accounts"], given.get("page", 1))
        if act.name == SIGN_IN:
            return self._signed_in(given["account"])
        function = FUNCTIONS[act.name]
        account = self._accounts.get(given["key"])
        owner = self.tables.get("accounts", account) if account else None
        if owner is None or owner["app"] != function.app or function.effect is None:
            raise Refused(f"this is no key of {function.app}, which {SIGN_IN} returns")
        shown = function.effect(self.tables, int(owner["id"]), given)
        if shown.startswith("{"):
            self._made[act.name] = json.loads(shown)["id"]
        return shown

    def _signed_in(self, account: int) -> str:
        if account not in self._keys:
            raise Refused(f"there is no account {account}")
        self._accounts[self._keys[account]] = account
        return f"key {self._keys[account]}"

    def resolved(self, act: Act) -> Act:
        """Return an act with the ids of what was made last in place of what stands for them."""
        if not any(isinstance(each, Made) for each in act.arguments.values()):
            return act
        found = {
            name: self._made.get(value.function, 1) if isinstance(value, Made) else value
            for name, value in act.arguments.items()
        }
        return act._replace(arguments=found)
