"""Parts about events and contacts: moving, inviting, cancelling, birthdays."""

from __future__ import annotations

from turngym.envs.apps.fiction import Fiction
from turngym.envs.apps.part import PAGES, Made, Part, look_up, step

_MONTHS = ("July", "August", "September", "October", "November", "December")


def move_event(fiction: Fiction) -> Part:
    """Move an event to the time that a mail names."""
    (person, twin, who), title = fiction.person(), fiction.topic()
    (box, its_box), (calendar, its_calendar) = fiction.account("mail"), fiction.account("calendar")
    event = fiction.event(calendar, title)
    for account in fiction.others(calendar):
        fiction.event(account, title)
    day, start = fiction.day(fiction.dice.whole(7, 12)), fiction.time()
    mail = fiction.mail(box, person, title, f"The {title} has to move: it is on {day} at {start} now.")
    other = f"Could we have the {title} on {fiction.day(8)} at {fiction.time()} instead?"
    fiction.mail(box, twin, title, other)
    text = (
        f"{who} wrote to {its_box} when the {title} takes place. Move this event in {its_calendar} to that time; "
        "mails of others about it do not count."
    )
    reads = [*look_up(person), step("mail_search", box, query=title, page=PAGES), step("mail_show", box, mail=mail)]
    reads.append(step("calendar_search", calendar, query=title, page=PAGES))
    return Part(text, reads, [step("calendar_move", calendar, event=event, day=day, start=start)])


def invite_group(fiction: Fiction) -> Part:
    """Create an event with a group of contacts as guests."""
    dice, group, title = fiction.dice, fiction.groups.pop(), fiction.topic()
    calendar, its_calendar = fiction.account("calendar")
    members = [fiction.contact(group=group) for _ in range(dice.whole(3, 4))]
    cells = {"day": fiction.day(dice.whole(7, 12)), "start": fiction.time(), "minutes": 15 * dice.whole(2, 8)}
    place = dice.one(("Town Hall", "Room 12", "the library"))
    text = (
        f"Add the event {title} to {its_calendar}, on {cells['day']} at {cells['start']}, {cells['minutes']} minutes "
        f"long, place {place}, and invite all contacts of the group {group}."
    )
    book = members[0]["account"]
    reads = [step("contacts_list_group", book, group=group, page=PAGES)]
    reads += [step("contacts_show", book, contact=each) for each in members]
    event = Made("calendar_create")
    writes = [step("calendar_create", calendar, title=title, **cells, place=place)]
    return Part(
        text,
        reads,
        writes + [step("calendar_add_guest", calendar, event=event, email=each["email"]) for each in members],
    )


def cancel_event(fiction: Fiction) -> Part:
    """Cancel an event and write to its guests."""
    dice, title = fiction.dice, fiction.topic()
    (box, its_box), (calendar, its_calendar) = fiction.account("mail"), fiction.account("calendar")
    guests = [fiction.contact() for _ in range(dice.whole(2, 4))]
    event = fiction.event(calendar, title, guests)
    for other in fiction.others(calendar):
        fiction.event(other, title, guests[1:])
    text = (
        f"Cancel the {title} in {its_calendar} and send each of its guests a mail from {its_box}, with the subject "
        f"{title} and the day on which it would have been, as YYYY-MM-DD, alone as the text."
    )
    reads = [step("calendar_search", calendar, query=title, page=PAGES)]
    reads.append(step("calendar_list_guests", calendar, event=event, page=PAGES))
    mails = [step("mail_send", box, to=each["email"], subject=title, text=event["day"]) for each in guests]
    return Part(text, reads, [step("calendar_delete", calendar, event=event), *mails])


def birthdays(fiction: Fiction) -> Part:
    """Create events for the birthdays of a group in a month."""
    dice, group, month = fiction.dice, fiction.groups.pop(), fiction.dice.whole(7, 12)
    calendar, its_calendar = fiction.account("calendar")
    members = [fiction.contact(group=group) for _ in range(dice.whole(3, 5))]
    count = dice.whole(1, 2)
    for place, each in enumerate(members):
        each["birthday"] = fiction.day(month if place < count else dice.whole(1, 6))[5:]
    text = (
        f"For each contact of the group {group} with a birthday in {_MONTHS[month - 7]}, add an event to "
        f"{its_calendar} on that day of 2031: the title is Birthday of and the whole name, the start 09:00, the length "
        "30 minutes, the place home."
    )
    book = members[0]["account"]
    reads = [step("contacts_list_group", book, group=group, page=PAGES)]
    reads += [step("contacts_show", book, contact=each) for each in members]
    writes = []
    for each in members[:count]:
        cells = {"title": f"Birthday of {each['name']}", "day": f"2031-{each['birthday']}", "start": "09:00"}
        writes.append(step("calendar_create", calendar, **cells, minutes=30, place="home"))
    return Part(text, reads, writes)


TIME = (move_event, invite_group, cancel_event, birthdays)
