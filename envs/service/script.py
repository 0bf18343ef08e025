"""Instances: policy, records and caller of one episode, and the course that a right agent takes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from turngym.envs.service.domain import Domain, Policy, Told, Wish
from turngym.envs.service.tables import Record, Tables, wants_of
from turngym.envs.website.draw import Dice, NoGoal
from turngym.envs.website.goal import Wanted
from turngym.seeding import restart

KNOWN, UNKNOWN, WRONG, PRIVATE = "known", "unknown", "wrong", "private"
"""How a caller knows a slot: at once, not, wrongly at first, or only after asking why."""
HOLDER = "holder"
CHANGING = 0.85
"""Share of instances whose right outcome changes a record."""
Generators: TypeAlias = tuple[np.random.Generator, np.random.Generator]
_TOOLLESS = ("status", "other")
_ATTEMPTS = 12


class Node(NamedTuple):
    """A wish and its right outcome.

    Args:
        kind: ``do``, ``refuse``, ``withdraw`` (the terms are too bad for the caller), ``inform`` or ``transfer``.
        wish: The wish.
        calls: Arguments of calls that are right, the best first.
        reasons: Right reasons to refuse.
        facts: True facts that may be told.
    """

    kind: str
    wish: Wish
    calls: tuple[Mapping[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()
    facts: tuple[Told, ...] = ()


@dataclass(frozen=True)
class Caller:
    """Record of a caller, fixed at reset; hidden from agents.

    Args:
        voice: Number that picks among the wordings.
        level: 0 says only what is asked, 1 also names the order at once, 2 all about the wish.
        patience: Useless acts in a row after which the caller hangs up.
        is_holder: Whether it is the customer's own account.
        slots: True value of the slots of identity.
        modes: How each is known, and the references by chain: ``order 0``, ``order 1``.
        errors: What is said first where a mode is ``wrong``.
        claims: Chains in which a refusal meets a false claim first.
        chains: Wishes, each with what is wanted instead.
    """

    voice: int
    level: int
    patience: int
    is_holder: bool
    slots: Mapping[str, Any]
    modes: Mapping[str, str]
    errors: Mapping[str, Any]
    claims: tuple[bool, ...]
    chains: tuple[tuple[Wish, ...], ...]


@dataclass(frozen=True)
class Script:
    """An instance with its solution.

    Args:
        number: Everything else follows from number and variant.
        variant: Picks another caller with the same opening.
        policy: Parameters of the policy.
        rows: Initial records.
        customer: Whose account it is about.
        caller: The caller.
        nodes: Course by chain.
        changes: Whether the right outcome changes a record.
    """

    number: int
    variant: int
    policy: Policy
    rows: Mapping[str, Mapping[int, Record]]
    customer: int
    caller: Caller
    nodes: tuple[tuple[Node, ...], ...]
    changes: bool


class _World(NamedTuple):
    """Contents of an instance other than its caller."""

    policy: Policy
    rows: Mapping[str, Mapping[int, Record]]
    customer: int


class _Draft(NamedTuple):
    """Wishes with their right course, before the rest of their caller is drawn."""

    dice: Dice
    is_holder: bool
    chains: tuple[tuple[Wish, ...], ...]
    nodes: tuple[tuple[Node, ...], ...]
    changes: bool


def build(domain: Domain, generators: Generators, number: int, variant: int, size: int, wishes: int) -> Script:
    """Return the instance of a number.

    Args:
        domain: The domain.
        generators: Two generators, set to the start of the instance's own streams.
        number: Names the instance.
        variant: Names the caller among those with the same opening.
        size: Number of customers.
        wishes: Most chains of wishes.
    """
    dice = Dice(restart(generators[0], "service", domain.name, number))
    world = _World(*domain.draw(dice, size))
    style, is_changing = (dice.whole(0, 10**6), dice.whole(0, 2)), dice.share() < CHANGING
    for attempt in range(_ATTEMPTS):
        chain = _opening(domain, dice, world)
        draft = _draft(domain, generators[1], (number, attempt, 0), world, chain, wishes)
        if draft.changes == is_changing:
            break
    if variant:
        draft = _draft(domain, generators[1], (number, attempt, variant), world, chain, wishes)
    return Script(number, variant, *world, _caller(domain, world, style, draft), draft.nodes, draft.changes)


def _opening(domain: Domain, dice: Dice, world: _World) -> list[dict[str, Any]]:
    chain, share = domain.wish(dice, world.policy, Tables(world.rows), world.customer, ()), dice.share()
    if share < 0.06:
        return [{**chain[0], "kind": "other"}]
    return [{**chain[0], "kind": "status"}] if share < 0.1 else chain


def _draft(
    domain: Domain,
    generator: np.random.Generator,
    names: tuple[int, int, int],
    world: _World,
    chain: Sequence[Wish],
    wishes: int,
) -> _Draft:
    dice, tables = Dice(restart(generator, "caller", *names)), Tables(world.rows)
    is_holder = dice.share() < 0.93
    chains = _chains(domain, dice, world, tables, chain, wishes if is_holder else 1)
    nodes = solve(domain, world.policy, tables, is_holder, chains)
    return _Draft(dice, is_holder, chains, nodes, bool(tables.changes()))


def _chains(
    domain: Domain, dice: Dice, world: _World, tables: Tables, chain: Sequence[Wish], wishes: int
) -> tuple[tuple[Wish, ...], ...]:
    """Return the chain and further ones, some shortened, with the limits that the caller keeps secret."""
    chains: list[list[Wish]] = [list(chain)]
    while len(chains) < wishes and chains[-1][0]["kind"] != "other" and dice.share() < 0.4:
        try:
            more = domain.wish(
                dice, world.policy, tables, world.customer, [each[0][domain.reference] for each in chains]
            )
        except NoGoal:  # no further order to speak of
            break
        kind = dice.one((*_TOOLLESS, "", "", "", ""))
        chains.append([{**more[0], "kind": kind}] if kind else list(more))
    found = []
    for each in chains:
        limits = [dice.whole(wish["worth"] // 2, wish["worth"]) if dice.share() < 0.35 else 0 for wish in each]
        kept = each[: 1 + dice.whole(0, 1)]
        found.append(tuple({**wish, "limit": limit} for wish, limit in zip(kept, limits, strict=False)))
    return tuple(found)


def _caller(domain: Domain, world: _World, style: tuple[int, int], draft: _Draft) -> Caller:
    dice, is_holder, chains, _, _ = draft
    account = world.rows["customers"][world.customer]
    slots = {slot: account[slot] for slot in domain.identity}
    modes = {slot: dice.one((KNOWN, KNOWN, KNOWN, WRONG, PRIVATE)) for slot in domain.identity}
    if dice.share() < 0.25:
        modes[str(world.policy[dice.one(("first", "second"))])] = UNKNOWN
    modes |= {
        f"{domain.reference} {place}": dice.one((KNOWN, KNOWN, KNOWN, WRONG, UNKNOWN)) for place in range(len(chains))
    }
    truths = slots | {f"{domain.reference} {place}": each[0][domain.reference] for place, each in enumerate(chains)}
    errors = {slot: _error(dice, truths[slot]) for slot, mode in modes.items() if mode == WRONG}
    claims = tuple([dice.share() < 0.3 for _ in chains])
    return Caller(*style, dice.whole(3, 4), is_holder, slots, modes, errors, claims, chains)


def _error(dice: Dice, value: Any) -> Any:
    """Return a value with one character changed: a digit of a number, two letters of a text swapped."""
    text = str(value)
    digits = [place for place, each in enumerate(text) if each.isdigit()]
    if digits:
        place = dice.one(digits[1:] or digits)
        text = text[:place] + str((int(text[place]) + dice.whole(1, 9)) % 10) + text[place + 1 :]
    else:
        place = dice.one([k for k in range(1, len(text) - 1) if text[k].isalpha() and text[k + 1].isalpha()])
        swapped = text[:place] + text[place + 1] + text[place] + text[place + 2 :]
        text = swapped if swapped != text else text[:place] + text[place:][1:]
    return int(text) if isinstance(value, int) else text


def solve(
    domain: Domain, policy: Policy, tables: Tables, is_holder: bool, chains: Sequence[Sequence[Wish]]
) -> tuple[tuple[Node, ...], ...]:
    """Return the right course; the tables are changed as it changes them."""
    if not is_holder:
        return ((Node("refuse", chains[0][0], reasons=(HOLDER,)),),)
    return tuple(tuple(_course(domain, policy, tables, chain)) for chain in chains)


def _course(domain: Domain, policy: Policy, tables: Tables, chain: Sequence[Wish]) -> list[Node]:
    found: list[Node] = []
    for wish in chain:
        kind = domain.kinds[wish["kind"]]
        if not kind.tool:
            facts = tuple(domain.facts(policy, tables, wish, {}, "")) if kind.answer else ()
            return [Node("inform" if kind.answer else "transfer", wish, facts=facts)]
        calls, reasons = domain.allowed(policy, tables, wish)
        if not calls:
            facts = tuple(told for reason in reasons for told in domain.facts(policy, tables, wish, {}, reason))
            found.append(Node("refuse", wish, (), tuple(reasons), facts))
        elif calls[0].get("refund", wish["limit"]) < wish["limit"]:
            facts = tuple(domain.facts(policy, tables, wish, calls[0], ""))
            found.append(Node("withdraw", wish, tuple(calls), (), facts))
        else:
            facts = tuple(domain.facts(policy, tables, wish, calls[0], ""))
            domain.functions[kind.tool](tables, **calls[0])
            return [*found, Node("do", wish, tuple(calls), (), facts)]
    return found


def targets_of(domain: Domain, script: Script) -> list[tuple[Wanted, ...]]:
    """Return the acceptable final states, as conditions on the records."""
    rows, nodes = script.rows, script.nodes
    done = [node for course in nodes for node in course if node.kind == "do"]
    found = []
    for choice in itertools.product(*(node.calls for node in done)):
        tables = Tables(rows)
        for node, arguments in zip(done, choice, strict=True):
            domain.functions[domain.kinds[node.wish["kind"]].tool](tables, **arguments)
        found.append(wants_of(rows, domain.schema, tables.changes()))
    return found
