"""The desk of a clinic: cancel and move visits, set reminders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from turngym.envs.service.clinic_policy import CUSTOMS, RULES, fee_for, notice_for, owner_of
from turngym.envs.service.domain import Act, Arguments, Domain, Kind, Policy, Result, Told, Wish, checked_number
from turngym.envs.service.tables import Record, Tables
from turngym.envs.website.draw import Dice
from turngym.envs.website.store import Cell
from turngym.envs.website.words import FIRST_NAMES, LAST_NAMES

SCHEMA = {
    "customers": ("name", "birth", "phone", "tier"),
    "visits": ("customer", "doctor", "day", "hour", "status", "reminder"),
    "openings": ("doctor", "day", "hour", "state"),
    "fees": ("visit", "cents"),
}
_IDENTITY = ("name", "birth", "phone")
_ORDERS = tuple(permutations(_IDENTITY))
_CHANNELS = ("sms", "mail", "letter", "call")
_TIMES = ("morning", "afternoon")


# Tools.


def find_patient(tables: Tables, name: str = "", birth: str = "", phone: str = "") -> Result:
    """Find the patient with all given details."""
    given = {key: value for key, value in (("name", name), ("birth", birth), ("phone", phone)) if value}
    found = tables.where("customers", **given) if given else []
    if len(found) != 1:
        return Result("no patient" if not found else f"{len(found)} patients")
    return Result(f"patient {found[0]['id']}: {found[0]['name']}, tier {found[0]['tier']}", (("customers", found[0]),))


def list_visits(tables: Tables, patient: int) -> Result:
    """List the numbers of a patient's visits."""
    found = tables.where("visits", customer=patient)
    return Result("visits " + (", ".join(str(each["id"]) for each in found) or "none"))


def get_visit(tables: Tables, visit: int) -> Result:
    """Show a visit."""
    found = tables.get("visits", visit)
    if found is None:
        return Result(f"no visit {visit}")
    text = (
        f"visit {visit} of patient {found['customer']}: {found['status']}, Dr {found['doctor']}, day {found['day']} at "
        f"{found['hour']}, reminder {found['reminder']}"
    )
    return Result(text, (("visits", found),))


def find_openings(tables: Tables, doctor: str) -> Result:
    """List the openings of a doctor."""
    found = tables.where("openings", doctor=doctor)
    shown = "; ".join(f"opening {each['id']}: day {each['day']} at {each['hour']}, {each['state']}" for each in found)
    return Result(f"Dr {doctor}: {shown}" if found else "no such doctor", tuple(("openings", each) for each in found))


def cancel_visit(tables: Tables, visit: int, fee: int) -> Result:
    """Cancel a visit and charge a fee.

    Args:
        tables: The records.
        visit: Its number.
        fee: The sum in cents, 0 for none.
    """
    if tables.get("visits", visit) is None:
        return Result(f"no visit {visit}")
    changed = tables.set("visits", visit, status="cancelled")
    charged = (("fees", tables.add("fees", visit=visit, cents=fee)),) if fee else ()
    return Result(f"done: visit {visit} cancelled, fee {fee}", (("visits", changed), *charged))


def move_visit(tables: Tables, visit: int, opening: int) -> Result:
    """Move a visit to an opening.

    Args:
        tables: The records.
        visit: Its number.
        opening: Number of the opening.
    """
    found, wanted = tables.get("visits", visit), tables.get("openings", opening)
    if found is None or wanted is None:
        return Result(f"no visit {visit}" if found is None else f"no opening {opening}")
    changed = tables.set("visits", visit, doctor=wanted["doctor"], day=wanted["day"], hour=wanted["hour"])
    taken = tables.set("openings", opening, state="taken")
    return Result(
        f"done: visit {visit} on day {wanted['day']} at {wanted['hour']}", (("visits", changed), ("openings", taken))
    )


def set_reminder(tables: Tables, visit: int, channel: str) -> Result:
    """Set the way in which a patient is reminded of a visit.

    Args:
        tables: The records.
        visit: Its number.
        channel: sms, mail, letter or call.
    """
    if tables.get("visits", visit) is None:
        return Result(f"no visit {visit}")
    changed = tables.set("visits", visit, reminder=channel)
    return Result(f"done: reminder of visit {visit} by {channel}", (("visits", changed),))


# Instances.


def _draw(dice: Dice, patients: int) -> tuple[dict[str, Cell], dict[str, dict[int, Record]], int]:
    first, second, spare = dice.one(_ORDERS)
    today, notice = dice.whole(100, 330), dice.whole(1, 4)
    policy: dict[str, Cell] = {
        "today": today,
        "first": first,
        "second": second,
        "spare": spare,
        "notice": notice,
        "private_notice": dice.whole(0, notice - 1),
        "ahead": dice.whole(12, 40),
        "channels": ", ".join(dice.some(_CHANNELS, 2, 3)),
        "fee": 50 * dice.whole(10, 90),
        "fee_days": notice + dice.whole(1, 8),
        "wording": dice.whole(0, 1),
        **{f"tell_{key}": dice.whole(0, 1) for key in CUSTOMS},
    }
    rows: dict[str, dict[int, Record]] = {table: {} for table in SCHEMA}
    doctors = dice.some(LAST_NAMES, 4, 4)
    number = dice.whole(100, 800)
    for doctor in doctors:
        for _ in range(dice.whole(3, 5)):
            number += dice.whole(1, 3)
            day, hour = today + dice.whole(1, int(policy["ahead"]) + 8), dice.whole(8, 17)
            state = dice.one(("free", "free", "taken"))
            rows["openings"][number] = {"id": number, "doctor": doctor, "day": day, "hour": hour, "state": state}
    numbers = [dice.whole(100, 199)]
    while len(numbers) < patients:
        numbers.append(numbers[-1] + dice.whole(1, 90))
    for number in numbers:
        _patient(dice, rows, number, policy, doctors)
    return policy, rows, dice.one(numbers)


def _patient(
    dice: Dice, rows: dict[str, dict[int, Record]], number: int, policy: Policy, doctors: Sequence[str]
) -> None:
    name, birth = (
        f"{dice.one(FIRST_NAMES)} {dice.one(LAST_NAMES)}",
        f"{dice.whole(1930, 2009)}-{dice.whole(10, 12)}-{dice.whole(10, 28)}",
    )
    phone, tier = f"0{dice.whole(100, 999)} {dice.whole(10_000, 99_999)}", dice.one(("public", "private"))
    rows["customers"][number] = {"id": number, "name": name, "birth": birth, "phone": phone, "tier": tier}
    for doctor in dice.some(doctors, 2, 3):
        visit = checked_number(dice.whole(1000, 9999))
        status = dice.one(("booked", "booked", "booked", "booked", "done", "missed"))
        ahead = dice.whole(0, int(policy["fee_days"]) + 6) if status == "booked" else -dice.whole(1, 30)
        rows["visits"][visit] = {
            "id": visit,
            "customer": number,
            "doctor": doctor,
            "day": int(policy["today"]) + ahead,
            "hour": dice.whole(8, 17),
            "status": status,
            "reminder": dice.one(_CHANNELS),
        }


def _chain(dice: Dice, policy: Policy, tables: Tables, customer: int, used: Sequence[int]) -> list[dict[str, Any]]:
    visit = dice.one([each for each in tables.where("visits", customer=customer) if each["id"] not in used])
    kind, other = dice.one((("cancel", "move"), ("move", "cancel"), ("remind", "move"), ("move", "remind")))
    channel = dice.one([each for each in _CHANNELS if each != visit["reminder"]])
    kept = {"visit": visit["id"], "doctor": visit["doctor"], "time": dice.one((*_TIMES, "any")), "channel": channel}
    return [{**kept, "kind": each, "worth": 0} for each in (kind, other)]


# Decisions.


def _calls(policy: Policy, tables: Tables, wish: Wish) -> list[dict[str, Any]]:
    visit = tables.get("visits", wish["visit"])
    if visit is None:
        return []
    if wish["kind"] == "cancel":
        return [{"visit": visit["id"], "fee": fee_for(policy, tables, visit)}]
    if wish["kind"] == "remind":
        return [{"visit": visit["id"], "channel": wish["channel"]}]
    openings = tables.where("openings", doctor=visit["doctor"])
    numbers = [each["id"] for each in openings if _is_at(each, wish["time"])]
    return [{"visit": visit["id"], "opening": number} for number in numbers or ([0] if openings else [])]


def _is_at(opening: Record, time: str) -> bool:
    return time in ("any", _TIMES[int(opening["hour"]) >= 12])


def _facts(policy: Policy, tables: Tables, wish: Wish, arguments: Arguments, refusal: str) -> list[Told]:
    visit = tables.get("visits", arguments.get("visit", wish.get("visit", 0)))
    if visit is None:
        return []
    if refusal:
        return [("days", notice_for(policy, tables, visit))] if refusal == "notice" else []
    if wish["kind"] == "status":
        return [("hour", visit["hour"])]
    fee = [("fee", arguments["fee"])] if "fee" in arguments else []
    return [*fee, ("visit", visit["id"])]


def _differs(tables: Tables, wish: Wish, arguments: Arguments) -> str:
    if arguments["visit"] != wish["visit"]:
        return "visit"
    opening = tables.get("openings", arguments.get("opening", 0))
    if "opening" in arguments and (opening is None or not _is_at(opening, wish["time"])):
        return "time"
    return "channel" if arguments.get("channel", wish["channel"]) != wish["channel"] else ""


def _found(tables: Tables, wish: Wish) -> int | None:
    visits = tables.where("visits", doctor=wish.get("doctor", ""))
    return int(visits[0]["id"]) if visits else None


def _reading(tables: Tables, wish: Wish, customer: int) -> Act | None:
    number = wish.get("visit")
    visit = tables.get("visits", number or 0)
    if number and visit is None:
        return Act("call", "get_visit", {"visit": number})
    if visit and wish["kind"] == "move" and not tables.where("openings", doctor=visit["doctor"]):
        return Act("call", "find_openings", {"doctor": visit["doctor"]})
    return None


def _decoys(tables: Tables, tool: str, arguments: Arguments) -> list[dict[str, Any]]:
    if "fee" in arguments:
        return [{**arguments, "fee": 0 if arguments["fee"] else 500}]
    return [{**arguments, "channel": each} for each in _CHANNELS if "channel" in arguments]


CLINIC = Domain(
    name="clinic",
    title="the desk of a clinic",
    schema=SCHEMA,
    reads=(find_patient, list_visits, get_visit, find_openings),
    writes=(cancel_visit, move_visit, set_reminder),
    identity=_IDENTITY,
    kinds={
        "cancel": Kind("cancel_visit", ("visit",)),
        "move": Kind("move_visit", ("visit", "time")),
        "remind": Kind("set_reminder", ("visit", "channel")),
        "status": Kind("", ("visit",), "hour"),
        "other": Kind("", ()),
    },
    phrases={
        "cancel": ("I cannot come to my visit", "please cancel my appointment", "I have to call off a visit"),
        "move": ("I need another time for a visit", "can my apointment be moved", "that day does not suit me"),
        "remind": ("I want to be reminded in another way", "please change my reminder", "I never see your reminders"),
        "status": ("at what hour is my visit", "when must I be there", "I forgot the hour of my visit"),
        "other": ("I need a diagnosis on the phone", "I want to complain about a bill", "I need a certificate"),
    },
    reference="visit",
    description="doctor",
    rules=RULES,
    customs=CUSTOMS,
    refusals=("status", "notice", "ahead", "opening", "channel"),
    draw=_draw,
    wish=_chain,
    calls=_calls,
    facts=_facts,
    differs=_differs,
    owner=owner_of,
    found=_found,
    reading=_reading,
    decoys=_decoys,
)
