"""Hanabi: seats that see all cards but their own build fireworks together."""

from __future__ import annotations

from turngym.envs.registration import Spec

_GAME = "turngym.envs.hanabi.game:Hanabi"

SPECS = {
    "turngym/Hanabi-v0": Spec(_GAME, {}, "Hanabi for two, who see the cards of each other.", partner="likely"),
    "turngym/HanabiSmall-v0": Spec(
        _GAME,
        {"colours": 2, "hand_size": 2, "hints": 3, "lives": 1},
        "Hanabi for two with two colours, hands of two cards, three hints and one life.",
        partner="likely",
    ),
}
