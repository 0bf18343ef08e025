"""Parts about mail: moving, answering, and what a mail says about a contact or a list."""

from __future__ import annotations

from turngym.envs.apps.fiction import Fiction
from turngym.envs.apps.part import PAGES, Part, look_up, step

GOODS = ("rice", "candles", "nails", "tape", "lemons", "soap", "flour", "string", "batteries", "tea", "sand", "salt")


def archive_mails(fiction: Fiction) -> Part:
    """Move all mails of somebody from one folder to another."""
    dice, (person, twin, who) = fiction.dice, fiction.person()
    box, its_box = fiction.account("mail")
    folder = fiction.folder()
    moved = [fiction.mail(box, person, fiction.topic(), "See you soon.") for _ in range(dice.whole(2, 4))]
    fiction.mail(box, person, "thanks", "See you soon.", "receipts")
    fiction.mail(box, twin, "thanks", "See you soon.")
    for other in fiction.others(box):
        fiction.mail(other, person, "thanks", "See you soon.")
    text = f"In {its_box}, move all mails from {who} that are in the inbox to the folder {folder}."
    reads = [*look_up(person), step("mail_search", box, query=person["email"], page=PAGES)]
    return Part(text, reads, [step("mail_move", box, mail=each, folder=folder) for each in moved])


def answer_with_number(fiction: Fiction) -> Part:
    """Answer a mail with the phone number that it asks for."""
    (person, twin, who), (wanted, _, name) = fiction.person(), fiction.person()
    box, its_box = fiction.account("mail")
    mail = fiction.mail(box, person, f"A question about {fiction.topic()}", f"What is the phone number of {name}?")
    fiction.mail(box, twin, "A question", f"What is the phone number of {person['name']}?")
    for other in fiction.others(box):
        fiction.mail(other, person, "A question", f"What is the phone number of {twin['name']}?")
    text = (
        f"{who} asks in a mail to {its_box} for a phone number. Answer that mail; the text is the number alone, as it "
        "is in the contacts."
    )
    reads = [*look_up(person), step("mail_search", box, query=person["email"], page=PAGES)]
    reads += [step("mail_show", box, mail=mail), *look_up(wanted)]
    return Part(text, reads, [step("mail_reply", box, mail=mail, text=wanted["phone"])])


def update_contact(fiction: Fiction) -> Part:
    """Enter the new number that somebody's mail names."""
    person, twin, who = fiction.person()
    box, its_box = fiction.account("mail")
    number, old = fiction.phone(), fiction.phone()
    mail = fiction.mail(box, person, "My new number", f"From now on my number is {number}, no longer {old}.")
    person["phone"] = old
    fiction.mail(box, twin, "My new number", f"From now on my number is {fiction.phone()}.")
    text = f"{who} has a new phone number and wrote it to {its_box}. Enter it in the contacts."
    reads = [*look_up(person), step("mail_search", box, query=person["email"], page=PAGES)]
    reads.append(step("mail_show", box, mail=mail))
    return Part(text, reads, [step("contacts_set_phone", person["account"], contact=person, phone=number)])


def complete_list(fiction: Fiction) -> Part:
    """Add to a note what a mail names and the note lacks."""
    dice, (person, twin, who) = fiction.dice, fiction.person()
    (box, its_box), (notes, its_notes) = fiction.account("mail"), fiction.account("notes")
    title, goods = f"{fiction.topic()} shopping", fiction.shuffled(GOODS)
    known, wanted = sorted(goods[: dice.whole(2, 4)]), goods[4 : 4 + dice.whole(2, 3)]
    asked = fiction.shuffled([*known[:2], *wanted])
    note = fiction.note(notes, title, "\n".join(known))
    for account in fiction.others(notes):
        fiction.note(account, title, "\n".join(goods[3:6]))
    mail = fiction.mail(box, person, title, f"Please get: {', '.join(asked)}.")
    fiction.mail(box, twin, title, f"Please get: {', '.join(goods[6:9])}.")
    text = (
        f"{who} wrote to {its_box} what to get. Append each of these things that the note {title} in {its_notes} lacks "
        "to it, one a line and in the order of the mail."
    )
    reads = [*look_up(person), step("mail_search", box, query=title, page=PAGES), step("mail_show", box, mail=mail)]
    reads += [step("notes_search", notes, query=title, page=PAGES), step("notes_show", notes, note_id=note)]
    added = [each for each in asked if each in wanted]
    return Part(text, reads, [step("notes_append", notes, note_id=note, text=each) for each in added])


MAIL = (archive_mails, answer_with_number, update_contact, complete_list)
