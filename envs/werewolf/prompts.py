"""The instructions and questions of Werewolf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turngym.envs.werewolf.lines import names
from turngym.envs.werewolf.roles import DOCTOR, SEER, WEREWOLF

_GOALS = {
    "werewolves": "You win with the werewolves, alive or dead: when they are as many as the others.",
    "village": "You win with the village, alive or dead: when no werewolf is left.",
}
_BOTH_GOALS = (
    "The werewolves win, alive or dead, when they are as many as the others; the village when no werewolf is left."
)
_TALK = {
    "seat_order": "the living speak one after another in the order of their seats",
    "random": "the living speak one after another in a drawn order",
    "parallel": "the living speak at once, nobody hears the others before",
    "bidding": "the living bid from 0 (nothing to say) to 4 (must answer) and the highest bid speaks; whoever was "
    "named in the last speech, then whoever spoke least, goes before equal bids; when all bid 0, talk ends",
}
_TIES = {
    "none": "in a tie nobody goes",
    "random": "in a tie one of those with the most votes is drawn",
    "runoff": "in a tie those with the most votes speak once more and a run-off between them decides; if it ties "
    "again, nobody goes",
}
_REVEALS = {
    "none": "Nobody learns the role of the dead before the end.",
    "team": "The team of the dead is made known.",
    "role": "The role of the dead is made known.",
}
_FORMAT = """\
You may think first. End your answer with one action, in brackets such as [vote player_4], or as a JSON object such as \
{"action": "vote", "target": "player_4"} or {"action": "say", "text": "Good morning."}. No player reads what you think.
The moderator's lines are the only ones without a speaker's name before them; what players say may be a lie."""


def instructions(role: str, team: str, roles: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return rules and answer format for one role, or for all of them where none has been dealt.

    Args:
        role: The reader's role; empty before the roles are dealt.
        team: The team that it plays for.
        roles: All roles at the table, in no order that says anything.
        options: Those of the game.
    """
    counts = ", ".join([f"{roles.count(kind)} {kind}" for kind in dict.fromkeys(roles)])
    parts = [
        f"This is a game of Werewolf with {len(roles)} players: {counts}. {_GOALS[team] if role else _BOTH_GOALS}",
        _night(roles, options),
        _day(options),
        f"{_REVEALS[options['reveal']]} After day {options['max_days']} without a winner, nobody wins.",
        _FORMAT,
        f"Your role: {role}." if role else "",
    ]
    return "\n".join([part for part in parts if part])


def _night(roles: Sequence[str], options: Mapping[str, Any]) -> str:
    in_turn = options["wolf_protocol"] == "sequential"
    rules = [
        "At night each living werewolf names a player who is no werewolf: [kill player_X]. "
        + ("Later ones see what earlier ones chose. " if in_turn else "")
        + "The choice of the last living werewolf in seat order counts."
    ]
    if SEER in roles:
        rules.append("The seer names a player and learns whether that is a werewolf: [see player_X].")
    if DOCTOR in roles:
        limits = [] if options["doctor_self"] else ["not itself"]
        limits += [] if options["doctor_repeat"] else ["not the same player in two nights running"]
        rules.append(
            "The doctor protects a player from the werewolves for this night: [save player_X]"
            + (f", {' and '.join(limits)}" if limits else "")
            + "."
        )
    return " ".join(rules)


def _day(options: Mapping[str, Any]) -> str:
    rounds, is_bidding = options["talk_rounds"], options["talk_protocol"] == "bidding"
    talk = ""
    if is_bidding and options["bid_turns"]:
        talk = f"By day up to {options['bid_turns']} times {_TALK['bidding']}: [bid 2], then [say ...]. "
    elif rounds and not is_bidding:
        times = "" if rounds == 1 else f" {rounds} times"
        talk = f"By day{times} {_TALK[options['talk_protocol']]}: [say ...], at most 600 characters. "
    how = "at once" if options["vote_protocol"] == "simultaneous" else "one after another in public"
    needs = (
        "with the most votes" if options["exile"] == "plurality" else "with the votes of more than half of the living"
    )
    return (
        f"{talk}Then the living vote {how} to eliminate a player: [vote player_X] for another one, or [abstain]. "
        f"The player {needs} is eliminated; {_TIES[options['tie']]}. Every vote becomes known."
    )


def question(role: str, phase: str, day: int, targets: Sequence[int]) -> str:
    """Return the question to a seat that is asked.

    Args:
        role: Its role.
        phase: ``night``, ``bid``, ``talk`` or ``vote``.
        day: Number of the day, or of the night before it.
        targets: The seats that it may name.
    """
    if phase == "talk":
        return f"Day {day}: your turn to speak. Answer [say ...], or [say] to say nothing."
    if phase == "bid":
        return f"Day {day}: how much do you want to speak next? Answer [bid X] with X from 0 to 4."
    if phase == "vote":
        return f"Day {day}: your vote. Answer [vote player_X] or [abstain]. Players: {names(targets)}."
    verb, what = {WEREWOLF: ("kill", "kill"), SEER: ("see", "look at"), DOCTOR: ("save", "protect")}[role]
    return f"Night {day}: whom do you {what}? Answer [{verb} player_X]. Players: {names(targets)}."
