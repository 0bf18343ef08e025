"""One conversation: the tables, the caller, what the agent knows, and what it broke."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from turngym.envs.parsing.calls import harmless
from turngym.envs.service.caller import CallerState
from turngym.envs.service.conduct import CONDUCT
from turngym.envs.service.domain import Act, Arguments, Domain, Told, Wish, key_of
from turngym.envs.service.lines import Said, prose
from turngym.envs.service.script import HOLDER, Node, Script, targets_of
from turngym.envs.service.tables import Tables, world_of
from turngym.envs.service.view import View
from turngym.envs.website.goal import Verdict, judge

BYE, TRANSFER, LEFT = "bye", "transfer", "left"
"""Ways in which a conversation ends."""


class Session:
    """A conversation.

    Args:
        domain: The domain.
        script: The instance.
        shows_acts: Whether the caller's acts follow the words.
        is_strict: Whether tools refuse what the policy forbids.
    """

    def __init__(self, domain: Domain, script: Script, shows_acts: bool, is_strict: bool) -> None:
        self.domain, self.script = domain, script
        self.tables, self.view, self.caller = Tables(script.rows), View(domain), CallerState(domain, script)
        self.violations: Counter[str] = Counter()
        self.due: list[Told] = []
        self.ended = ""
        self.finder = domain.reads[0].__name__
        self._shows_acts, self._is_strict, self._replies = shows_acts, is_strict, 0
        self._agreed_at: dict[str, tuple[int, int]] = {}
        self._settled: set[tuple[int, int]] = set()
        self._reached = {(0, 0)}
        self.opening = self._spoken(None, self.caller.opening())

    # What the rules of conduct look at.

    def owner_of(self, act: Act) -> int | None:
        """Return the customer whose records an act is about, None where it names none."""
        return self.domain.owner(self.tables, act.arguments)

    @property
    def reasons(self) -> list[str]:
        """Right reasons to refuse the open wish."""
        if not self.script.caller.is_holder:
            return [HOLDER]
        wish = self.caller.wish
        if not self.domain.kinds[wish["kind"]].tool:
            return []
        return self.domain.allowed(self.script.policy, self.tables, wish)[1]

    @cached_property
    def facts(self) -> frozenset[Told]:
        """Everything that may be told."""
        return frozenset(told for course in self.script.nodes for node in course for told in node.facts)

    # Acts.

    def perform(self, act: Act) -> str:
        """Carry out an act and return what the agent reads."""
        broken = self._broken(act)
        if broken and self._is_strict and act.kind == "call":
            return f"{act.name} -> not done: rule {broken[0]}"
        self.violations.update(broken)
        if act.kind == "call":
            return self._call(act)
        if act.kind in (BYE, TRANSFER):
            self.ended = act.kind
            if act.kind == TRANSFER and not broken:
                self._settled.add((self.caller.chain, self.caller.place))
            return "The conversation has ended."
        return self._speak(act)

    def _broken(self, act: Act) -> list[str]:
        found = [each.name for each in CONDUCT if each.breaks(self, act)]
        if act.kind in ("call", "propose") and act.name in self.domain.write_names:
            rules = self.domain.broken(self.script.policy, self.tables, act.name, act.arguments)
            found += [rule.name for rule in rules]
        return found

    def _call(self, act: Act) -> str:
        result = self.domain.functions[act.name](self.tables, **act.arguments)
        if act.name in self.domain.write_names and result.seen:
            key = key_of(act.name, act.arguments)
            if self.view.agreed.pop(key, None) is not None:
                self._settled.add(self._agreed_at.pop(key))
            self._require({"kind": ""}, act.arguments, "")
        self.view.read(act, result)
        return f"{act.name} -> {harmless(result.text)}"

    def _require(self, wish: Wish, arguments: Arguments, refusal: str) -> None:
        """Note the facts that must be told now; for the expert, as far as the agent can know them."""
        policy = self.script.policy
        for due, tables in ((self.due, self.tables), (self.view.due, self.view.known)):
            facts = self.domain.facts(policy, tables, wish, arguments, refusal)
            due += [told for told in facts if policy.get(f"tell_{told[0]}")]

    def _speak(self, act: Act) -> str:
        before, wish = (self.caller.chain, self.caller.place), self.caller.wish
        was_open = self.caller.is_open
        said = self.caller.reply(act)
        names = {each.act for each in said}
        is_refused = act.kind == "refuse" and "accept" in names
        if act.kind == "tell":
            self.view.tells.append((act.name, act.arguments["value"]))
        if is_refused or "decline" in names or (act.kind == "tell" and was_open and not self.caller.is_open):
            self._settled.add(before)
        if is_refused and act.name != HOLDER:
            self._require(wish, {}, act.name)
        if "yes" in names:
            self._agreed_at[key_of(act.name, act.arguments)] = before
        if self.caller.is_open:
            self._reached.add((self.caller.chain, self.caller.place))
        if self.caller.has_left:
            self.ended = LEFT
        return self._spoken(act, said)

    def _spoken(self, act: Act | None, said: list[Said]) -> str:
        self.view.hear(act, said)
        words = prose(said, self.domain.phrases, self.script.caller.voice, self._replies)
        self._replies += 1
        return f"Caller: {words} | {', '.join(each.text for each in said)}" if self._shows_acts else f"Caller: {words}"

    # Judgement.

    def verdict(self) -> Verdict:
        """Return how the records compare with the nearest acceptable final state."""
        script = self.script
        world, changes = world_of(script.rows), self.tables.changes()
        targets = targets_of(self.domain, script)
        found = [judge(wants, changes, world, self.domain.schema) for wants in targets if wants]
        if not found:
            return Verdict((), len(changes))
        return max(found, key=lambda each: (each.is_reached, each.progress))

    def is_success(self) -> bool:
        """Return whether everything is as it should be at the end."""
        nodes = [(place, node) for place, course in enumerate(self.script.nodes) for node in course]
        return (
            self.ended == (TRANSFER if nodes[-1][1].kind == "transfer" else BYE)
            and not self.violations
            and all((place, self._place_of(place, node)) in self._settled for place, node in nodes)
            and all(told in self.view.tells for told in (*self.due, *self._answers()))
            and self._state_is_right()
        )

    def _state_is_right(self) -> bool:
        verdict = self.verdict()
        return not verdict.unasked and all(verdict.held)

    def _answers(self) -> list[Told]:
        return [told for course in self.script.nodes for node in course if node.kind == "inform" for told in node.facts]

    def _place_of(self, place: int, node: Node) -> int:
        return next((k for k, wish in enumerate(self.script.caller.chains[place]) if wish is node.wish), 0)

    def progress(self) -> float:
        """Return the share of what is to be done that is done, from what the agent can know; violations count against.

        To be done are: finding the customer, each wish heard of, each fact that is due.
        """
        told = sum(each in self.view.tells for each in self.due)
        done = (self.view.customer is not None) + len(self._settled & self._reached) + told
        return done / (1 + len(self._reached) + len(self.due) + self.violations.total())
