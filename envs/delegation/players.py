"""The player of systems of agents that both roles can learn from."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from turngym.envs.delegation.game import ASK, REPORT, Delegation, write
from turngym.envs.delegation.vault import LOOK, OPEN, Vault
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.views import SeatView, game_of
from turngym.envs.parsing.scanning import first_element

_ASKED = re.compile('The main agent asks: "(.*)"')
_REPORTED = re.compile('The sub-agent (?:reports: "(.*)"|gave no report.)')


class Expert(Player):
    """Asks for what the expert of the environment would do, one action a call, and reports what it brought.

    As main agent it acts itself where sub-agents may not, and where no calls are left. In the vault both roles use only
    what they have read: the main agent asks for each digit, and opens the vault with those reported.
    """

    name = "expert"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return a request, a report or an action."""
        game = game_of(view)
        assert isinstance(game, Delegation)
        if not game.options.calls:
            return game.env.expert_action()
        if view.seat:
            [request] = [found[1] for line in view.lines if (found := _ASKED.fullmatch(line))][:1]
            return _vault_work(game, game.env, request) if isinstance(game.env, Vault) else _work(game, view.lines)
        return _vault_lead(game, game.env, view.lines) if isinstance(game.env, Vault) else _lead(game)


def _lead(game: Delegation) -> str:
    """Ask for the expert's next action, or take it where it is the main agent's."""
    wanted, chosen = game.env.expert_action(), game.options
    is_mine = any(wanted.startswith(f"<{tool}>") for tool in chosen.main_tools.split())
    if is_mine or game.used == chosen.calls:
        return wanted
    found = first_element(wanted, chosen.sub_tools.split())
    return write(ASK, wanted if found is None else found.content)


def _work(game: Delegation, lines: Sequence[str]) -> str:
    return write(REPORT, lines[-1]) if game.turns else game.env.expert_action()


def _vault_lead(game: Delegation, env: Vault, lines: Sequence[str]) -> str:
    digits = [found[1] or "" for line in lines if (found := _REPORTED.fullmatch(line))]
    missing = env.parts()[len(digits) :]
    if missing and game.used < game.options.calls:
        return write(ASK, missing[0])
    return write(OPEN, "".join(digit if digit.isdecimal() else "0" for digit in digits))


def _vault_work(game: Delegation, env: Vault, request: str) -> str:
    return write(REPORT, env.digit(request)) if game.turns else write(LOOK, request.partition(" ")[0])
