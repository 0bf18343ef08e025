"""The web mail: its tables and their initial content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turngym.envs.website import words
from turngym.envs.website.page import OFF, ON
from turngym.envs.website.site import Tables

NAV = {"Folders": "/folders", "Compose": "/compose", "Search": "/search", "Contacts": "/contacts", "Rules": "/rules"}
INBOX, SENT, DRAFTS, TRASH = "Inbox", "Sent", "Drafts", "Trash"
FIXED = (INBOX, SENT, DRAFTS, TRASH)
SCHEMA = {
    "folder": ("name",),
    "contact": ("name", "email", "phone"),
    "mail": ("folder", "sender", "address", "subject", "text", "unread", "starred"),
    "rule": ("sender", "folder"),
}
"""The address of a mail is its sender's, or who it goes to where it is from you."""
ME = "you"
CONTACTS, OTHERS, MAILS, DRAFT_COUNT = 7, 2, 20, 2


def email_of(name: str) -> str:
    """Return the address of somebody.

    >>> email_of("Mara Lind")
    'mara@lind.net'
    """
    first, _, last = name.lower().partition(" ")
    return f"{first}@{last}.net"


def phone_of(share: float) -> str:
    """Return a phone number."""
    return f"555-{int(share * 10_000):04d}"


def build(generator: np.random.Generator) -> Tables:
    """Make the content of a mailbox."""

    def some(choices: Sequence[str], count: int) -> list[str]:
        return [choices[place] for place in generator.permutation(len(choices))[:count].tolist()]

    count = CONTACTS + OTHERS
    people = [
        " ".join(pair) for pair in zip(some(words.FIRST_NAMES, count), some(words.LAST_NAMES, count), strict=True)
    ]
    contacts, others, strangers = people[:CONTACTS], people[CONTACTS:], some(words.STRANGERS, 2)
    folders = [*FIXED, *some(words.FOLDERS, 2)]
    senders = [*contacts[:3] * 2, *contacts[3:], *strangers * 2, *others, *contacts[:2]]
    subjects = some(words.TOPICS, MAILS + DRAFT_COUNT)
    draws, order = generator.random((MAILS + DRAFT_COUNT, 5)).tolist(), generator.permutation(len(senders)).tolist()
    tables: Tables = {
        "folder": [(number, name) for number, name in enumerate(folders, 1)],
        "contact": [
            (number, name, email_of(name), phone_of(share))
            for number, (name, share) in enumerate(zip(contacts, generator.random(CONTACTS).tolist(), strict=True), 1)
        ],
        "mail": [],
        "rule": [(1, strangers[0], TRASH)],
    }
    for place, (subject, draw) in enumerate(zip(subjects, draws, strict=True)):
        text = words.MAIL_TEXTS[int(draw[0] * len(words.MAIL_TEXTS))]
        if place >= MAILS:
            tables["mail"].append((place + 1, DRAFTS, ME, "", subject, text, OFF, OFF))
            continue
        sender = senders[order[place % len(senders)]]
        folder = INBOX if place < len(senders) - 1 else (*folders[4:], TRASH)[int(draw[1] * 3)]
        address = f"news@{sender.lower().replace(' ', '')}.org" if sender in strangers else email_of(sender)
        if sender in others:
            text = f"My phone number is {phone_of(draw[4])}."
        marks = (ON if each else OFF for each in (draw[2] < 0.2 and folder == INBOX, draw[3] < 0.15))
        tables["mail"].append((place + 1, folder, sender, address, subject, text, *marks))
    return tables
