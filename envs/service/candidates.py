"""Acts to choose from: made of what the agent knows, right and wrong ones alike."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from turngym.envs.service.acts import Vocabulary
from turngym.envs.service.domain import Act, Domain, Policy, Wish
from turngym.envs.service.view import View


def candidates(domain: Domain, words: Vocabulary, policy: Policy, view: View) -> Iterator[Act]:
    """Yield calls, proposals and facts that the knowledge of a view suggests.

    With the acts that are always possible, ``words.always``, the expert's is among them.
    """
    yield from _reads(domain, view)
    facts = dict.fromkeys(view.due)
    if view.kind:
        wish = view.wish()
        facts |= dict.fromkeys(
            told for key in (*words.refusals, "") for told in _facts(domain, policy, view, wish, key)
        )
        yield from _changes(domain, policy, view, wish)
    for agreed in view.agreed.values():
        yield agreed._replace(kind="call")
        facts |= dict.fromkeys(domain.facts(policy, view.known, {"kind": ""}, agreed.arguments, ""))
    yield from (Act("tell", key, {"value": value}) for key, value in facts)


def _reads(domain: Domain, view: View) -> Iterator[Act]:
    find, list_all, show = (each.__name__ for each in domain.reads[:3])
    known = {slot: view.told[slot] for slot in domain.identity if view.told.get(slot) is not None}
    for pair in combinations(known, 2):
        yield Act("call", find, {slot: known[slot] for slot in pair})
    if view.customer is None:
        return
    yield Act("call", list_all, {domain.listing: view.customer})
    for number in dict.fromkeys([*view.listed, *filter(None, [view.told.get(domain.reference)])]):
        yield Act("call", show, {domain.reference: number})
    act = domain.reading(view.known, view.wish(), view.customer) if view.kind else None
    if act is not None and act.name != show:
        yield act


def _facts(domain: Domain, policy: Policy, view: View, wish: Wish, refusal: str) -> list[tuple[str, str | int]]:
    return domain.facts(policy, view.known, wish, {}, refusal)


def _changes(domain: Domain, policy: Policy, view: View, wish: Wish) -> Iterator[Act]:
    kind = domain.kinds[view.kind]
    if not kind.tool or any(wish.get(slot) is None for slot in kind.slots):
        return
    for arguments in domain.calls(policy, view.known, wish):
        for each in (arguments, *domain.decoys(view.known, kind.tool, arguments)):
            yield Act("propose", kind.tool, each)
            yield Act("call", kind.tool, each)
