"""Parts of a domain: tables, tools, rules of its policy, wishes of its callers. One file per domain states them."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from turngym.envs.instances import canonical_text
from turngym.envs.service.tables import Record, Tables
from turngym.envs.tools.tool_schema import Tool, tool_of
from turngym.envs.website.draw import Dice
from turngym.envs.website.store import Cell

Arguments: TypeAlias = Mapping[str, Any]
Policy: TypeAlias = Mapping[str, Cell]
"""Parameter -> value drawn for the instance."""
Wish: TypeAlias = Mapping[str, Any]
"""``kind`` and the slots of one wish; hidden from agents: ``limit``, the smallest refund that is accepted."""
Told: TypeAlias = tuple[str, Cell]
"""Key and value of a fact that the agent tells."""


class Act(NamedTuple):
    """Action of an agent.

    Args:
        kind: ``ask``, ``tell``, ``propose``, ``refuse``, ``transfer``, ``bye`` or ``call``.
        name: Slot, key, tool or reason.
        arguments: Arguments of the tool; of ``tell`` the ``value``.
    """

    kind: str
    name: str = ""
    arguments: Arguments = types.MappingProxyType({})


class Rule(NamedTuple):
    """One line of a policy and the predicate that it stands for.

    Args:
        name: Name, which violations are counted by.
        texts: Wordings with the parameters in braces; one is drawn per instance.
        breaks: Whether a change breaks it, given policy, tables before, tool and arguments.
        refusal: Reason to refuse a wish that breaks it; empty where the caller's wish cannot.
    """

    name: str
    texts: tuple[str, ...]
    breaks: Callable[[Policy, Tables, str, Arguments], bool]
    refusal: str = ""


class Kind(NamedTuple):
    """A kind of wish.

    Args:
        tool: The tool that fulfils it; empty where the wish is a question, or out of scope.
        slots: What must be known, in the order of asking.
        answer: Key of the fact that answers a question.
    """

    tool: str
    slots: tuple[str, ...]
    answer: str = ""


class Result(NamedTuple):
    """Result of a tool.

    Args:
        text: What the agent reads.
        seen: Table and record of every row that it shows.
    """

    text: str
    seen: tuple[tuple[str, Record], ...] = ()


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain.

    Args:
        name: Its name.
        title: Who the agent works for.
        schema: Table -> columns after the id; ``customers`` holds the callers, with the slots of identity.
        reads: Tools that change nothing; the first finds the caller by ``identity`` slots, the second lists
            what the caller has, the third shows one of it.
        writes: Tools that change records.
        identity: Slots that callers are identified by.
        kinds: Kinds of wishes.
        phrases: Kind of wish -> wordings of it.
        reference: Slot whose value is the number of the record that a wish is about; callers may not know it.
        description: Slot by which it is found then.
        rules: Rules of the policy about changes.
        customs: Rule texts about what must be told, by key; each is active in some instances.
        refusals: Reasons to refuse.
        draw: Makes policy parameters, rows and the customer who calls.
        wish: Draws the wishes of one chain: a wish and what is wanted instead of it, in order.
        calls: Arguments of every call that would fulfil a wish, best first; rules may forbid some.
        facts: Facts that a call, a refusal or a question makes true, to be told.
        differs: Slot in which a proposal differs from a wish; empty if in none.
        owner: Customer whose records the arguments name; None if they name none.
        found: The record that a description of a wish names, among those read.
        reading: The next read that a decision about a wish needs, given what has been read; None if none.
        decoys: Arguments of calls that are plausible and wrong, for the list of legal actions.
    """

    name: str
    title: str
    schema: Mapping[str, tuple[str, ...]]
    reads: Sequence[Callable[..., Result]]
    writes: Sequence[Callable[..., Result]]
    identity: tuple[str, ...]
    kinds: Mapping[str, Kind]
    phrases: Mapping[str, tuple[str, ...]]
    reference: str
    description: str
    rules: tuple[Rule, ...]
    customs: Mapping[str, tuple[str, ...]]
    refusals: tuple[str, ...]
    draw: Callable[[Dice, int], tuple[dict[str, Cell], dict[str, dict[int, Record]], int]]
    wish: Callable[[Dice, Policy, Tables, int, Sequence[int]], list[dict[str, Any]]]
    calls: Callable[[Policy, Tables, Wish], list[dict[str, Any]]]
    facts: Callable[[Policy, Tables, Wish, Arguments, str], list[Told]]
    differs: Callable[[Tables, Wish, Arguments], str]
    owner: Callable[[Tables, Arguments], int | None]
    found: Callable[[Tables, Wish], int | None]
    reading: Callable[[Tables, Wish, int], Act | None]
    decoys: Callable[[Tables, str, Arguments], list[dict[str, Any]]]
    functions: Mapping[str, Callable[..., Result]] = field(init=False)
    tools: Mapping[str, Tool] = field(init=False)
    write_names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        functions = {each.__name__: each for each in (*self.reads, *self.writes)}
        tools = {name: tool_of(each.__get__(object())) for name, each in functions.items()}
        object.__setattr__(self, "functions", functions)
        object.__setattr__(self, "tools", tools)
        object.__setattr__(self, "write_names", frozenset(each.__name__ for each in self.writes))

    @property
    def listing(self) -> str:
        """Argument of the second read tool: the customer."""
        return str(next(iter(self.tools[self.reads[1].__name__].parameters["properties"])))

    def broken(self, policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> list[Rule]:
        """Return the rules that a change would break."""
        return [rule for rule in self.rules if rule.breaks(policy, tables, tool, arguments)]

    def allowed(self, policy: Policy, tables: Tables, wish: Wish) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the calls that fulfil a wish within the policy, and the reasons against the others."""
        good, reasons = list[dict[str, Any]](), dict[str, None]()
        tool = self.kinds[wish["kind"]].tool
        for arguments in self.calls(policy, tables, wish):
            broken = self.broken(policy, tables, tool, arguments)
            if not broken:
                good.append(arguments)
            reasons.update(dict.fromkeys(rule.refusal for rule in broken if rule.refusal))
        return good, [] if good else list(reasons)


def checked_number(bare: int) -> int:
    """Return four digits with one that checks them: no error in one digit gives another number of a record.

    >>> checked_number(1234)
    12348
    """
    return 10 * bare + (3 * (bare // 1000) + 7 * (bare // 100) + 9 * (bare // 10) + bare) % 10


def key_of(name: str, arguments: Arguments) -> str:
    """Return tool and arguments as a text, equal for equal calls."""
    return f"{name} {canonical_text(dict(arguments))}"


def document(domain: Domain, common: Sequence[tuple[str, ...]], policy: Policy) -> str:
    """Return the policy as the agent reads it; the parameter ``wording`` picks among the texts."""
    wording = int(policy["wording"])
    texts = [*common, *(rule.texts for rule in domain.rules)]
    texts += [texts for key, texts in domain.customs.items() if policy[f"tell_{key}"]]
    lines = [each[wording % len(each)].format_map(policy) for each in texts if each]
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


_FIELD = re.compile(r"\\\{(\w+)\\\}")


@lru_cache(maxsize=1024)
def _pattern(wording: str) -> re.Pattern[str]:
    return re.compile(_FIELD.sub(r"(?P<\1>[\\w, ]+)", re.escape(wording)))


def read_policy(domain: Domain, common: Sequence[tuple[str, ...]], text: str) -> dict[str, Cell]:
    """Return the parameters that a policy document states; the reverse of :func:`document`."""
    found: dict[str, Cell] = {f"tell_{key}": 0 for key in domain.customs}
    lines = [line.partition(". ")[2] for line in text.splitlines()]
    known = [("", texts) for texts in (*common, *(rule.texts for rule in domain.rules))]
    known += [(f"tell_{key}", texts) for key, texts in domain.customs.items()]
    for custom, texts in known:
        for wording in texts:
            match = next(filter(None, map(_pattern(wording).fullmatch, lines)), None)
            if match:
                found.update(
                    {name: int(value) if value.isdigit() else value for name, value in match.groupdict().items()}
                )
                found |= {custom: 1} if custom else {}
                break
    return found
