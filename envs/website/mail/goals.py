"""Goals in the web mail."""

from __future__ import annotations

from turngym.envs.website import words
from turngym.envs.website.draw import Draw, Maker, NoGoal, Record
from turngym.envs.website.goal import Goal, Task, Wanted, look, sets
from turngym.envs.website.mail.data import DRAFTS, INBOX, ME, SENT, TRASH, phone_of
from turngym.envs.website.mail.site import forwarded
from turngym.envs.website.page import OFF, ON
from turngym.envs.website.site import address, pages_of

MOST = 3
"""Mails that one goal is about at most."""


def _sent(to: str, subject: str, text: str) -> Wanted:
    """Return what it means that a mail was sent."""
    return Wanted("mail", 0, {"folder": SENT, "sender": ME, "address": to, "subject": subject, "text": text})


def _received(draw: Draw) -> list[Record]:
    """Return the mails in the inbox that contacts sent."""
    names = {each["name"] for each in draw.records("contact")}
    return [each for each in draw.records("mail", folder=INBOX) if each["sender"] in names]


def _from(draw: Draw, sender: str, low: int = 1) -> list[Record]:
    """Return the mails of a sender in the inbox, if they are as many as a goal may be about."""
    found = draw.records("mail", folder=INBOX, sender=sender)
    if not low <= len(found) <= MOST:
        raise NoGoal
    return found


def _search(sender: str) -> tuple[str, str]:
    """Return the way to all mails of a sender."""
    return "/search", address("/search", {"search": sender})


def _on(mail: Record, what: str, via: tuple[str, ...], **cells: str) -> Task:
    """Return the task of pressing a button on the page of a mail."""
    path = f"/mails/{mail['id']}"
    fields = {"folder": cells["folder"]} if what == "move" else {}
    return Task(path, f"{path}/{what}", fields, sets("mail", mail["id"], **cells), via)


def _look_up(contact: Record) -> Task:
    return look(f"/contacts/{contact['id']}")


def _reply(mail: Record, text: str) -> Task:
    path = f"/mails/{mail['id']}/reply"
    return Task(path, path, {"text": text}, (_sent(mail["address"], f"Re: {mail['subject']}", text),))


def reply(draw: Draw) -> Goal:
    """Answer one mail, and star it."""
    mail, text = draw.one([each for each in _received(draw) if each["starred"] == OFF]), draw.one(words.ANSWERS)
    goal = f'Reply to the mail "{mail["subject"]}" from {mail["sender"]} with the text "{text}", and star that mail.'
    return Goal(goal, (_reply(mail, text), _on(mail, "star", (), starred=ON)))


def forward(draw: Draw) -> Goal:
    """Pass a mail on to a contact."""
    mail, comment = draw.one(_received(draw)), draw.one(words.ANSWERS)
    contact = draw.one([each for each in draw.records("contact") if each["name"] != mail["sender"]])
    path, text = f"/mails/{mail['id']}/forward", forwarded(comment, mail["text"])
    fields = {"to": contact["email"], "comment": comment}
    wanted = _sent(contact["email"], f"Fwd: {mail['subject']}", text)
    goal = f'Forward the mail "{mail["subject"]}" to {contact["name"]} with the comment "{comment}".'
    return Goal(goal, (_look_up(contact), Task(path, path, fields, (wanted,))))


def write(draw: Draw) -> Goal:
    """Write to a contact."""
    contact, subject, text = draw.one(draw.records("contact")), draw.one(words.TOPICS), draw.one(words.ANSWERS)
    fields = {"to": contact["email"], "subject": subject, "text": text}
    goal = f'Write a mail to {contact["name"]} with the subject "{subject}" and the text "{text}".'
    send = Task("/compose", "/compose", fields, (_sent(contact["email"], subject, text),))
    return Goal(goal, (_look_up(contact), send))


def file_sender(draw: Draw) -> Goal:
    """Make a folder for the mails of one sender."""
    taken = {each["name"] for each in draw.records("folder")}
    name = draw.one([each for each in words.FOLDERS if each not in taken])
    contact = draw.one(draw.records("contact"))["name"]
    mails, by = _from(draw, contact, 2), _search(contact)
    make = Task("/folders", "/folders", {"name": name}, (Wanted("folder", 0, {"name": name}),))
    goal = f'Make the folder "{name}" and move all mails from {contact} in the Inbox there.'
    return Goal(goal, (make, look(by[1], by[0]), *(_on(each, "move", by, folder=name) for each in mails)))


def star_unread(draw: Draw) -> Goal:
    """Star the unread mails of the inbox."""
    inbox = draw.records("mail", folder=INBOX)
    mails = [each for each in inbox if each["unread"] == ON and each["starred"] == OFF]
    if not 2 <= len(mails) <= MOST:
        raise NoGoal
    by = ("/folders", "/folders/1")
    looks = [look(path, *by) for path in pages_of(by[1], len(inbox))]
    goal = draw.one(("Star every unread mail in the Inbox.", "Put a star on all mails in the Inbox that are unread."))
    return Goal(goal, (*looks, *(_on(each, "star", by, starred=ON) for each in mails)))


def purge(draw: Draw) -> Goal:
    """Delete the mails of one sender."""
    senders = [each["sender"] for each in draw.records("mail", folder=INBOX) if each["address"].startswith("news@")]
    sender = draw.one(sorted(set(senders)))
    mails, by = _from(draw, sender), _search(sender)
    goal = f'Delete all mails from "{sender}" that are in the Inbox.'
    return Goal(goal, (look(by[1], by[0]), *(_on(each, "delete", by, folder=TRASH) for each in mails)))


def add_contact(draw: Draw) -> Goal:
    """Save a sender as a contact, with the phone number from the mail."""
    mails = [each for each in draw.records("mail", folder=INBOX) if each["text"].startswith("My phone number")]
    mail = draw.one(mails)
    phone = mail["text"].rstrip(".").rpartition(" ")[2]
    fields = {"name": mail["sender"], "email": mail["address"], "phone": phone}
    goal = (
        f'Add the sender of the mail "{mail["subject"]}" to the contacts, with name, email and the phone number that '
        "the mail tells."
    )
    by = ("/contacts", "/contacts/new")
    save = Task(by[1], by[1], fields, (Wanted("contact", 0, fields),), by[:1])
    return Goal(goal, (look(f"/mails/{mail['id']}"), save))


def send_phone(draw: Draw) -> Goal:
    """Answer a mail with somebody's phone number."""
    mail = draw.one(_received(draw))
    contact = draw.one([each for each in draw.records("contact") if each["name"] != mail["sender"]])
    goal = (
        f'Reply to the mail "{mail["subject"]}" with the phone number of {contact["name"]} as the text, nothing else.'
    )
    return Goal(goal, (_look_up(contact), _reply(mail, contact["phone"])))


def rule(draw: Draw) -> Goal:
    """Add a rule, and do what it asks for with the mails that are there."""
    contact = draw.one(draw.records("contact"))["name"]
    folder = draw.one(draw.records("folder")[4:])["name"]
    mails, by = _from(draw, contact), _search(contact)
    fields = {"sender": contact, "folder": folder}
    goal = (
        f'Add a rule that puts mails from "{contact}" into the folder {folder}, and move the mails from {contact} '
        "that are in the Inbox there."
    )
    add = Task("/rules", "/rules", fields, (Wanted("rule", 0, fields),))
    return Goal(goal, (add, look(by[1], by[0]), *(_on(each, "move", by, folder=folder) for each in mails)))


def finish_draft(draw: Draw) -> Goal:
    """Send a draft to a contact, with another text."""
    mail, contact = draw.one(draw.records("mail", folder=DRAFTS)), draw.one(draw.records("contact"))
    text, path = draw.one(words.ANSWERS), f"/mails/{mail['id']}/edit"
    fields = {"to": contact["email"], "text": text}
    wants = sets("mail", mail["id"], address=contact["email"], text=text, folder=SENT)
    goal = f'Change the text of the draft "{mail["subject"]}" to "{text}" and send it to {contact["name"]}.'
    return Goal(goal, (_look_up(contact), Task(path, path, fields, wants)))


def tidy_contacts(draw: Draw) -> Goal:
    """Change one contact, and delete another."""
    kept, gone = draw.some(draw.records("contact"), 2, 2)
    if draw.share() < 0.5:
        kept, gone = gone, kept
    phone, path = phone_of(draw.share()), f"/contacts/{kept['id']}/edit"
    if phone == kept["phone"]:
        raise NoGoal
    page = f"/contacts/{gone['id']}"
    goal = f'{kept["name"]} has the new phone number "{phone}": save it. Then delete the contact {gone["name"]}.'
    save = Task(path, path, {"phone": phone}, sets("contact", kept["id"], phone=phone))
    return Goal(goal, (save, Task(page, f"{page}/delete", {}, (Wanted("contact", gone["id"], {}),))))


KINDS: dict[str, Maker] = {
    "reply": reply,
    "forward": forward,
    "write": write,
    "file_sender": file_sender,
    "star_unread": star_unread,
    "purge": purge,
    "add_contact": add_contact,
    "send_phone": send_phone,
    "rule": rule,
    "finish_draft": finish_draft,
    "tidy_contacts": tidy_contacts,
}
"""Kind of goal -> what makes one."""
