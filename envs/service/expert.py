"""The expert: decides from the policy document, what the caller said and what tools showed."""

from __future__ import annotations

from turngym.envs.service.caller import MORE
from turngym.envs.service.conduct import OUT_OF_SCOPE
from turngym.envs.service.domain import Act, Domain, Policy, Wish, key_of
from turngym.envs.service.script import HOLDER
from turngym.envs.service.view import View


def next_act(domain: Domain, policy: Policy, view: View) -> Act:
    """Return the expert's next act.

    Args:
        domain: The domain.
        policy: Parameters, as read from the document.
        view: Knowledge of the agent.
    """
    told = view.told
    if (act := _identify(domain, policy, view)) is not None:
        return act
    if told[HOLDER] == "no":
        return Act("refuse", HOLDER) if view.kind else _end(view)
    for due in view.due:
        if due not in view.tells:
            return Act("tell", due[0], {"value": due[1]})
    for agreed in view.agreed.values():
        return agreed._replace(kind="call")
    if not view.kind:
        return _end(view)
    kind = domain.kinds[view.kind]
    if not kind.tool and not kind.answer:
        return Act("transfer", OUT_OF_SCOPE)
    wish = view.wish()
    return _find_out(domain, view, wish) or _decide(domain, policy, view, wish)


def _end(view: View) -> Act:
    return Act("bye") if view.is_all else Act("ask", MORE)


def _identify(domain: Domain, policy: Policy, view: View) -> Act | None:
    told = view.told
    if HOLDER not in told:
        return Act("ask", HOLDER)
    if view.customer is not None:
        return None
    wanted = [str(policy["first"]), str(policy["second"])]
    for slot in (*wanted, str(policy["spare"])):
        is_needed = slot in wanted or any(told[each] is None for each in wanted)
        if is_needed and (slot not in told or slot in view.doubt):
            return Act("ask", slot)
    known = [slot for slot in wanted if told[slot] is not None]
    known += [str(policy["spare"])] * (len(known) < len(wanted))
    return Act("call", domain.reads[0].__name__, {slot: told[slot] for slot in domain.identity if slot in known})


def _find_out(domain: Domain, view: View, wish: Wish) -> Act | None:
    """Return the next question or look into the records, None when a decision can be made."""
    for slot in domain.kinds[view.kind].slots:
        if slot in wish and wish[slot] is None:
            return _search(domain, view, wish)
        if slot not in wish or slot in view.doubt:
            return Act("ask", slot)
    return domain.reading(view.known, wish, int(view.customer or 0))


def _search(domain: Domain, view: View, wish: Wish) -> Act:
    """Return the next act for finding the record that the caller describes."""
    if domain.description not in wish:
        return Act("ask", domain.description)
    if not view.listed:
        return Act("call", domain.reads[1].__name__, {domain.listing: view.customer})
    reads = (Act("call", domain.reads[2].__name__, {domain.reference: number}) for number in view.listed)
    unread = (act for act in reads if key_of(act.name, act.arguments) not in view.facts)
    return next(unread, Act("ask", domain.description))


def _decide(domain: Domain, policy: Policy, view: View, wish: Wish) -> Act:
    if answer := domain.kinds[view.kind].answer:
        facts = dict(domain.facts(policy, view.known, wish, {}, ""))
        return Act("tell", answer, {"value": facts[answer]})
    calls, reasons = domain.allowed(policy, view.known, wish)
    if calls:
        return Act("propose", domain.kinds[view.kind].tool, calls[0])
    return Act("refuse", reasons[0] if reasons else domain.refusals[0])
