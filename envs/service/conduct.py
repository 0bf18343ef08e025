"""Rules of conduct that hold in every domain: identity, other people's records, consent, refusals, transfers, facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from turngym.envs.service.domain import Act, key_of
from turngym.envs.service.script import HOLDER

if TYPE_CHECKING:
    from turngym.envs.service.session import Session

OUT_OF_SCOPE = "out_of_scope"
TRANSFERS = (OUT_OF_SCOPE, "complaint")
_SPEECH = ("ask", "bye")


class Conduct(NamedTuple):
    """A rule of conduct.

    Args:
        name: Name, which violations are counted by.
        texts: Wordings with the policy's parameters in braces.
        breaks: Whether an act breaks it, given the session before.
    """

    name: str
    texts: tuple[str, ...]
    breaks: Callable[[Session, Act], bool]


def identity_of(session: Session) -> list[str]:
    """Return the slots by which the policy identifies this caller."""
    policy, told = session.script.policy, session.view.told
    wanted = [str(policy["first"]), str(policy["second"])]
    unknown = [slot for slot in wanted if slot in told and told[slot] is None]
    return [slot for slot in wanted if slot not in unknown] + [str(policy["spare"])] * bool(unknown)


def _order(session: Session, act: Act) -> bool:
    policy, told = session.script.policy, session.view.told
    if act.kind == "ask" and act.name == policy["second"]:
        return policy["first"] not in told
    if act.kind == "ask" and act.name == policy["spare"]:
        return str(policy["spare"]) not in identity_of(session)
    if act.kind == "call" and act.name == session.finder:
        wanted = {slot: told.get(slot) for slot in identity_of(session)}
        return dict(act.arguments) != wanted
    return False


def _is_public(session: Session, act: Act) -> bool:
    if act.kind == "call":
        return act.name == session.finder or (
            session.owner_of(act) is None and act.name not in session.domain.write_names
        )
    return act.kind in _SPEECH


def _identity(session: Session, act: Act) -> bool:
    return session.view.customer is None and not _is_public(session, act)


def _holder(session: Session, act: Act) -> bool:
    answer = session.view.told.get(HOLDER)
    is_refusal = act.kind == "refuse" and act.name == HOLDER
    return answer != "yes" and not is_refusal and not _is_public(session, act)


def _other_customer(session: Session, act: Act) -> bool:
    owner = session.owner_of(act) if act.kind in ("call", "propose") else None
    return owner is not None and owner != session.view.customer


def _consent(session: Session, act: Act) -> bool:
    is_write = act.kind == "call" and act.name in session.domain.write_names
    return is_write and key_of(act.name, act.arguments) not in session.view.agreed


def _refusal(session: Session, act: Act) -> bool:
    return act.kind == "refuse" and session.view.kind != "" and act.name not in session.reasons


def _evidence(session: Session, act: Act) -> bool:
    if act.kind != "refuse" or act.name == HOLDER:
        return False
    calls = session.domain.calls(session.script.policy, session.view.known, session.caller.wish)
    return not calls


def _transfer(session: Session, act: Act) -> bool:
    kind = session.domain.kinds.get(session.view.kind)
    is_right = kind is not None and not kind.tool and not kind.answer and act.name == OUT_OF_SCOPE
    return act.kind == "transfer" and not is_right


def _fact(session: Session, act: Act) -> bool:
    return act.kind == "tell" and (act.name, act.arguments["value"]) not in session.facts


def _ending(session: Session, act: Act) -> bool:
    return act.kind == "bye" and not session.view.is_all


CONDUCT = (
    Conduct(
        "identification",
        (
            "Identify every caller by {first}, then {second}. If one of them is not known, ask for {spare} in its "
            "place. Look up the customer by exactly these two; if nobody is found, ask for them again.",
            "A caller is identified by {first} and, after it, {second}. Only if one is not known, {spare} replaces it. "
            "Find the customer by these two details and no others; ask again if nobody is found.",
        ),
        _order,
    ),
    Conduct(
        "identity",
        (
            "Until the customer is found, show, propose, refuse and tell nothing about an account.",
            "Nothing about an account may be read, told, proposed or refused before the customer is found.",
        ),
        _identity,
    ),
    Conduct(
        "holder",
        (
            "Also ask holder before that. If the caller is not the account holder, refuse with holder and do no more.",
            "Before that, also ask holder. Refuse with holder if the caller is not the holder of the account.",
        ),
        _holder,
    ),
    Conduct(
        "other_customer",
        (
            "Touch no records of other customers.",
            "The records of other customers stay closed.",
        ),
        _other_customer,
    ),
    Conduct(
        "consent",
        (
            "Propose every change, with the same arguments, and make it only after a yes. One yes is for one change. "
            "Propose only what this policy allows.",
            "Make a change only after the caller has said yes to a proposal with exactly its arguments, once for each "
            "yes. Never propose what this policy forbids.",
        ),
        _consent,
    ),
    Conduct(
        "refusal",
        (
            "Refuse only what this policy forbids, with a reason that it names, whatever was promised.",
            "A refusal needs a reason of this policy that holds, and no promise of others changes it.",
        ),
        _refusal,
    ),
    Conduct(
        "evidence",
        (
            "Read the records that decide about a wish before refusing it.",
            "No refusal before the records that decide have been read.",
        ),
        _evidence,
    ),
    Conduct(
        "transfer",
        (
            "Transfer with out_of_scope what no tool and no fact can settle, and nothing else.",
            "Wishes beyond tools and facts are transferred with out_of_scope; others never.",
        ),
        _transfer,
    ),
    Conduct("fact", ("Tell only what is true, in cents, days, numbers or words of the records.",), _fact),
    Conduct(
        "ending",
        (
            "When a wish is settled, ask more; say bye after the caller wants nothing more.",
            "After each settled wish ask more, and end with bye only when nothing more is wanted.",
        ),
        _ending,
    ),
)
TEXTS = tuple(each.texts for each in CONDUCT)
NAMES = tuple(each.name for each in CONDUCT)
