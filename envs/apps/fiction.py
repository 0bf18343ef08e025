"""The fiction of an instance: one person with accounts, acquaintances and records, of which parts of requests take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from turngym.envs.apps.effects import CATALOGUE, SCHEMA
from turngym.envs.apps.functions import APPS
from turngym.envs.website.draw import Dice
from turngym.envs.website.store import Cell

Draft: TypeAlias = dict[str, Any]
"""A row whose id is drawn at the end; cells may be drafts, which stand for their ids."""
FIRST = (
    *("Ada", "Bela", "Cleo", "Dario", "Edda", "Femi", "Greta", "Hugo", "Imani", "Jonas", "Kira", "Lev", "Mara", "Nils"),
    *("Olga", "Pavel", "Quinn", "Rosa", "Sami", "Tilda", "Ugo", "Viktor", "Wanda", "Yusuf", "Zora", "Alma", "Boris"),
    *("Carla", "Dmitri", "Elin", "Franz", "Gwen", "Henk", "Ines", "Jurek", "Katya", "Luis", "Milo", "Nadia", "Otis"),
)
LAST = (
    *("Adler", "Brandt", "Costa", "Dietz", "Ekman", "Farkas", "Gruber", "Holm", "Ivers", "Jansen", "Kovac", "Lindt"),
    *("Moser", "Novak", "Ostrow", "Pohl", "Rossi", "Sander", "Torres", "Urban", "Vogel", "Winter", "Zeman"),
)
ROLES = (
    *("plumber", "dentist", "landlord", "cousin", "gardener", "tailor", "florist", "lawyer", "baker", "painter"),
    *("vet", "tutor", "coach", "neighbour", "roofer", "joiner", "barber", "editor", "nurse", "pilot", "librarian"),
    *("potter", "surveyor", "translator", "beekeeper", "banker", "optician", "glazier", "cook", "organist", "ranger"),
)
GROUPS = ("choir", "hiking", "office", "chess", "book club", "allotment", "quiz team")
TOPICS = (
    *("harvest", "kitchen", "museum", "bicycle", "orchard", "theatre", "lantern", "harbour", "marathon", "workshop"),
    *("aquarium", "pottery", "regatta", "vineyard", "archive", "carnival", "festival", "lecture", "picnic", "quarry"),
)
KINDS = ("plan", "evening", "list", "budget", "review", "meeting", "tour", "draft", "course", "report")
FOLDERS = ("drafts", "photos", "letters", "recipes", "taxes", "scans", "travel", "manuals", "backup", "old")
PLACES = ("Town Hall", "Cafe Linde", "Room 12", "the boathouse", "Studio 4", "the library", "Gate 3")
ARTISTS = (
    *(
        "The Herons",
        "Paper Tide",
        "Nadia Quill",
        "Low Lantern",
        "Blue Ferry",
        "Otto & Wren",
        "Salt Choir",
        "Mirka Lund",
    ),
    *("Glass Orchard", "North Pier", "Ivo Sand", "The Tides"),
)
BANDS = ("Marble Fox", "Ten Bridges", "Lena Frost", "Dry Creek")
"""Artists that no request is about."""
SONG = ("River", "Winter", "Copper", "Silent", "Golden", "Distant", "Paper", "Broken", "Velvet", "Hollow", "Amber")
OF_SONG = ("Road", "Morning", "Letters", "Garden", "Signal", "Waltz", "Harbour", "Window", "Engine", "Summer")
NAMES = ("home", "work", "club")
_SHARED = "contacts"
_DOMAINS = {"home": "postbox.example", "work": "office.example", "club": "club.example"}
_FRIENDS, _FEWEST, _MOST = 6, 5, 8


class Fiction:
    """Accounts and records, with the people and things that parts of requests may still take.

    Args:
        dice: Randomness.
        level: Difficulty from 1 to 3: the number of accounts in each app.
    """

    def __init__(self, dice: Dice, level: int) -> None:
        self.dice, self.level = dice, level
        self.drafts: dict[str, list[Draft]] = {table: [] for table in SCHEMA}
        self._first, self._roles, self._topics = (self.shuffled(each) for each in (FIRST, ROLES, TOPICS))
        self._artists, self.groups, self._folders = (self.shuffled(each) for each in (ARTISTS, GROUPS, FOLDERS))
        self.me = f"{self._first.pop().lower()}.{dice.one(LAST).lower()}"
        self.accounts: dict[str, list[Draft]] = {}
        for app in APPS:
            names = NAMES[: 1 if app == _SHARED else level]
            self.accounts[app] = [] if app == "accounts" else [self._account(app, name) for name in names]
        self._extras = [self.contact() for _ in range(_FRIENDS)]
        self._fill()

    def shuffled(self, values: Sequence[Any]) -> list[Any]:
        """Return the values in a random order."""
        share = self.dice.share
        return [values[place] for _, place in sorted([(share(), place) for place in range(len(values))])]

    def add(self, table: str, **cells: Any) -> Draft:
        """Add a row and return it."""
        self.drafts[table].append(cells)
        return cells

    def _account(self, app: str, name: str) -> Draft:
        made = self.add("accounts", app=app, name=name, address=f"{self.me}@{_DOMAINS[name]}")
        if app == "pay":
            self.add("wallets", account=made, cents=self.dice.whole(900_000, 2_000_000))
        return made

    # What parts of requests take; nothing is taken twice.

    def account(self, app: str) -> tuple[Draft, str]:
        """Return an account of an app, and words for it."""
        found = self.dice.one(self.accounts[app])
        kind = {"calendar": "calendar", "pay": "payments account", "mail": "mail"}.get(app, f"{app} account")
        return found, f"the {found['name']} {kind}"

    def others(self, account: Draft) -> list[Draft]:
        """Return the other accounts of the same app."""
        return [each for each in self.accounts[account["app"]] if each is not account]

    def contact(self, first: str = "", but: str = "", has_role: bool = False, group: str = "") -> Draft:
        """Add a contact.

        Args:
            first: First name; a new one if empty.
            but: Last name of somebody else with this first name.
            has_role: Whether the contact has a role, which nobody else has.
            group: Group of the contact.
        """
        dice = self.dice
        first, last = first or self._first.pop(), dice.one([each for each in LAST if each != but])
        name = f"{first} {last}".lower()
        return self.add(
            "contacts",
            account=self.accounts[_SHARED][0],
            name=f"{first} {last}",
            role=self._roles.pop() if has_role else "",
            email=f"{name.replace(' ', '.')}@{dice.one(('mail', 'post', 'net'))}.example",
            phone=self.phone(),
            handle=f"@{name.replace(' ', '-')}{dice.whole(10, 99)}",
            group=group,
            birthday=self.day()[5:],
        )

    def person(self) -> tuple[Draft, Draft, str]:
        """Return a contact, another one to be mistaken for the first, and words for the first.

        Above level 1, both have the same first name, and the words are that name and the role.
        """
        person = self.contact(has_role=True)
        first, last = str(person["name"]).split()
        if self.level == 1:
            return person, self.contact(has_role=True), f"{first} {last}"
        return person, self.contact(first, last, has_role=True), f"{first} the {person['role']}"

    def phone(self) -> str:
        """Return a phone number."""
        return f"0{self.dice.whole(200, 989)} {self.dice.whole(100_000, 999_999)}"

    def topic(self) -> str:
        """Return a name for a thing, which nothing else has."""
        return f"{self._topics.pop()} {self.dice.one(KINDS)}"

    def artist(self) -> str:
        """Return an artist whom no other part is about."""
        return str(self._artists.pop())

    def folder(self) -> str:
        """Return the name of a folder that nothing is in yet."""
        return str(self._folders.pop())

    def day(self, month: int = 0) -> str:
        """Return a day of 2031."""
        return f"2031-{month or self.dice.whole(1, 12):02}-{self.dice.whole(1, 28):02}"

    def time(self) -> str:
        """Return a time of the day."""
        return f"{self.dice.whole(8, 20):02}:{self.dice.one((0, 15, 30, 45)):02}"

    def cents(self) -> int:
        """Return a sum."""
        return self.dice.whole(500, 60_000)

    def mail(self, account: Draft, sender: Draft, subject: str, text: str, folder: str = "inbox") -> Draft:
        """Add a mail that somebody sent."""
        cells = {"sender": sender["email"], "to": account["address"], "subject": subject, "text": text}
        day = self.day(self.dice.whole(1, 5))
        return self.add("mails", account=account, folder=folder, **cells, day=day, starred="no", label="")

    def event(self, account: Draft, title: str, guests: Sequence[Draft] = ()) -> Draft:
        """Add an event with guests."""
        cells = {"day": self.day(self.dice.whole(7, 12)), "start": self.time(), "minutes": 15 * self.dice.whole(1, 8)}
        made = self.add("events", account=account, title=title, **cells, place=self.dice.one(PLACES))
        for each in guests:
            self.add("guests", event=made, email=each["email"])
        return made

    def payment(
        self, account: Draft, handle: str, cents: int, note: str, day: str = "", direction: str = "out"
    ) -> Draft:
        """Add a payment."""
        cells = {"direction": direction, "handle": handle, "cents": cents, "note": note}
        return self.add("payments", account=account, **cells, day=day or self.day(self.dice.whole(1, 5)))

    def request(self, account: Draft, person: Draft, note: str, status: str = "open") -> Draft:
        """Add a request of somebody for a payment."""
        cells = {"handle": person["handle"], "cents": self.cents(), "note": note, "status": status}
        return self.add("requests", account=account, direction="in", **cells)

    def note(self, account: Draft, title: str, text: str) -> Draft:
        """Add a note."""
        return self.add("notes", account=account, title=title, text=text, tag="", pinned="no")

    def file(self, account: Draft, folder: str, name: str, text: str = "", day: str = "") -> Draft:
        """Add a file."""
        return self.add("files", account=account, folder=folder, name=name, text=text, day=day or self.day(3))

    def song(self, artist: str, title: str = "") -> Draft:
        """Add a song to the catalogue."""
        title = title or f"{self.dice.one(SONG)} {self.dice.one(OF_SONG)}"
        cells: dict[str, Cell] = {"title": title, "artist": artist, "album": f"{self.dice.one(SONG)} {artist[:3]}"}
        cells |= {"year": self.dice.whole(1990, 2030), "seconds": self.dice.whole(120, 420)}
        return self.add("songs", account=CATALOGUE, **cells)

    def playlist(self, account: Draft, name: str, songs: Sequence[Draft]) -> Draft:
        """Add a playlist."""
        made = self.add("playlists", account=account, name=name)
        for each in songs:
            self.add("tracks", playlist=made, song=each)
        return made

    # Records that no part is about.

    def _fill(self) -> None:
        dice = self.dice
        songs = [self.song(dice.one(BANDS), f"{word} {dice.one(OF_SONG)}") for word in SONG for _ in range(2)]
        for account in self.drafts["accounts"]:
            fill = {"mail": self._fill_mail, "calendar": self._fill_calendar, "notes": self._fill_notes}
            fill |= {"pay": self._fill_pay, "files": self._fill_files}
            if account["app"] == "music":
                for place, name in enumerate(("running", "quiet", "loud")):
                    first = dice.whole(0, 3) + 5 * place
                    self.playlist(account, name, songs[first : first + dice.whole(3, 5)])
                self.add("likes", account=account, song=dice.one(songs))
            elif account["app"] in fill:
                for _ in range(dice.whole(_FEWEST, _MOST)):
                    fill[account["app"]](account)

    def _about(self) -> str:
        return f"{self.dice.one(PLACES)} {self.dice.one(KINDS)}"

    def _fill_mail(self, account: Draft) -> None:
        about = self._about()
        folder = self.dice.one(("inbox", "inbox", "receipts"))
        self.mail(account, self.dice.one(self._extras), about, f"Here is what we said about {about}.", folder)

    def _fill_calendar(self, account: Draft) -> None:
        self.event(account, self._about(), self.dice.some(self._extras, 0, 2))

    def _fill_notes(self, account: Draft) -> None:
        self.note(account, self._about(), f"ask {self.dice.one(self._extras)['name']} about {self._about()}")

    def _fill_pay(self, account: Draft) -> None:
        person = self.dice.one(self._extras)
        self.payment(account, person["handle"], self.cents(), self._about(), "", self.dice.one(("in", "out")))
        if self.dice.share() < 0.3:
            self.request(account, person, self._about(), self.dice.one(("open", "paid", "declined")))

    def _fill_files(self, account: Draft) -> None:
        self.file(account, self.dice.one(("desk", "misc")), f"{self._about()}.txt".replace(" ", "-").lower())
