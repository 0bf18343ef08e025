"""Policy of the clinic: the rules, the fee, and what must be told."""

from __future__ import annotations

from turngym.envs.service.domain import Arguments, Policy, Rule
from turngym.envs.service.tables import Record, Tables


def owner_of(tables: Tables, arguments: Arguments) -> int | None:
    """Return the patient whose records arguments name, None if they name none."""
    if "patient" in arguments:
        return int(arguments["patient"])
    visit = tables.get("visits", arguments.get("visit", 0))
    return int(visit["customer"]) if visit else None


def _visit(tables: Tables, arguments: Arguments) -> Record:
    return tables.get("visits", arguments.get("visit", 0)) or {"id": 0, "status": "none", "day": 0, "customer": 0}


def _is_private(tables: Tables, visit: Record) -> bool:
    return (tables.get("customers", visit["customer"]) or {}).get("tier") == "private"


def notice_for(policy: Policy, tables: Tables, visit: Record) -> int:
    """Return the days ahead at which a visit can still be changed."""
    return int(policy["private_notice"] if _is_private(tables, visit) else policy["notice"])


def fee_for(policy: Policy, tables: Tables, visit: Record) -> int:
    """Return the cents that cancelling a visit costs."""
    is_late = int(visit["day"]) - int(policy["today"]) <= int(policy["fee_days"])
    return int(policy["fee"]) if is_late and not _is_private(tables, visit) else 0


def _breaks_status(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    return _visit(tables, arguments)["status"] != "booked"


def _breaks_notice(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    visit = _visit(tables, arguments)
    is_change = tool in ("cancel_visit", "move_visit") and visit["status"] == "booked"
    return is_change and int(visit["day"]) - int(policy["today"]) < notice_for(policy, tables, visit)


def _breaks_ahead(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    opening = tables.get("openings", arguments.get("opening", 0))
    return opening is not None and int(opening["day"]) - int(policy["today"]) > int(policy["ahead"])


def _breaks_opening(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    opening = tables.get("openings", arguments.get("opening", 0))
    return tool == "move_visit" and (opening is None or opening["state"] != "free")


def _breaks_doctor(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    opening = tables.get("openings", arguments.get("opening", 0))
    return opening is not None and opening["doctor"] != _visit(tables, arguments).get("doctor")


def _breaks_channel(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    return tool == "set_reminder" and arguments["channel"] not in str(policy["channels"]).split(", ")


def _breaks_fee(policy: Policy, tables: Tables, tool: str, arguments: Arguments) -> bool:
    return tool == "cancel_visit" and arguments["fee"] != fee_for(policy, tables, _visit(tables, arguments))


RULES = (
    Rule(
        "status",
        (
            "Change only visits that are booked; otherwise refuse with status.",
            "If a visit is not booked, refuse with status.",
        ),
        _breaks_status,
        "status",
    ),
    Rule(
        "notice",
        (
            "Visits are cancelled and moved at least {notice} days ahead, for tier private {private_notice}. If it is "
            "later than that, refuse with notice.",
            "Refuse with notice to cancel or move a visit that is fewer than {notice} days away; for tier private, "
            "fewer than {private_notice}.",
        ),
        _breaks_notice,
        "notice",
    ),
    Rule(
        "ahead",
        (
            "Move visits to days at most {ahead} days from today; otherwise refuse with ahead.",
            "No visit is moved to a day more than {ahead} days from today: refuse with ahead.",
        ),
        _breaks_ahead,
        "ahead",
    ),
    Rule(
        "opening",
        (
            "Only free openings can be given; otherwise refuse with opening.",
            "An opening that is not free cannot be given: refuse with opening.",
        ),
        _breaks_opening,
        "opening",
    ),
    Rule("doctor", ("A visit stays with its doctor.", "Visits are never moved to another doctor."), _breaks_doctor),
    Rule(
        "channel",
        (
            "Reminders go by {channels}. Refuse others with channel.",
            "For reminders there is only {channels}; otherwise refuse with channel.",
        ),
        _breaks_channel,
        "channel",
    ),
    Rule(
        "fee",
        (
            "Cancelling {fee_days} days ahead or later costs {fee} cents, for tier private 0; earlier it is free.",
            "The fee for cancelling is {fee} cents if the visit is at most {fee_days} days away, else 0; tier private "
            "never pays.",
        ),
        _breaks_fee,
    ),
)
CUSTOMS = {
    "fee": ("After cancelling, tell fee with the cents.", "Once a visit is cancelled, its fee must be told in cents."),
    "visit": (
        "After any change, tell visit with its number.",
        "Whenever something was changed, tell the number as visit.",
    ),
    "days": (
        "Whenever you refuse with notice, also tell days with the notice that holds for the caller.",
        "A refusal with notice needs a tell of days, the notice that this caller must give.",
    ),
}
