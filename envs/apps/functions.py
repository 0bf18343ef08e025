"""All functions of the apps, each declared once: name, parameters, a sentence, and its effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from turngym.envs.apps import effects as do
from turngym.envs.apps.effects import Effect

APPS: Mapping[str, str] = {
    "accounts": "Accounts in all apps; signing in gives the key that their functions need.",
    "contacts": "People with roles, addresses, phone numbers and handles for payments.",
    "mail": "Mail in folders: inbox, sent, trash and others.",
    "calendar": "Events and their guests.",
    "notes": "Notes with titles, texts and tags.",
    "pay": "Payments between people, in cents, and requests for payments.",
    "files": "Text files in folders, and with whom they are shared.",
    "music": "A catalogue of songs, playlists, and songs that are liked.",
}
"""App -> what it holds."""
_NUMBER = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string"}
PARAMETERS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "key": (_TEXT, "key of the account"),
    "page": (_NUMBER, "page, from 1"),
    "query": (_TEXT, "text to look for, in any case of its letters"),
    "account": (_NUMBER, "id of an account"),
    "contact": (_NUMBER, "id of a contact"),
    "mail": (_NUMBER, "id of a mail"),
    "event": (_NUMBER, "id of an event"),
    "note_id": (_NUMBER, "id of a note"),
    "payment": (_NUMBER, "id of a payment"),
    "request": (_NUMBER, "id of a request"),
    "file": (_NUMBER, "id of a file"),
    "song": (_NUMBER, "id of a song"),
    "playlist": (_NUMBER, "id of a playlist"),
    "name": (_TEXT, "name"),
    "role": (_TEXT, "what the person does or is to you"),
    "email": (_TEXT, "mail address"),
    "phone": (_TEXT, "phone number"),
    "handle": (_TEXT, "handle for payments, such as @ada"),
    "group": (_TEXT, "group of contacts"),
    "birthday": (_TEXT, "day as MM-DD"),
    "to": (_TEXT, "mail address of the receiver"),
    "subject": (_TEXT, "subject"),
    "text": (_TEXT, "text"),
    "folder": (_TEXT, "name of a folder"),
    "label": (_TEXT, "label, empty for none"),
    "title": (_TEXT, "title"),
    "day": (_TEXT, "day as YYYY-MM-DD"),
    "start": (_TEXT, "time as HH:MM"),
    "minutes": (_NUMBER, "length in minutes"),
    "place": (_TEXT, "place"),
    "tag": (_TEXT, "tag, empty for none"),
    "cents": (_NUMBER, "sum in cents"),
    "note": (_TEXT, "what the payment is for"),
    "artist": (_TEXT, "artist"),
    "album": (_TEXT, "album"),
}
"""Parameter -> schema and meaning."""


class Function(NamedTuple):
    """A function of an app.

    Args:
        app: The app.
        verb: Its name in the app.
        parameters: Its parameters after the key; ``?`` ends those that may be left out.
        text: A sentence.
        effect: What it does; None for those that only the session can do.
    """

    app: str
    verb: str
    parameters: tuple[str, ...]
    text: str
    effect: Effect | None

    @property
    def name(self) -> str:
        """The name in calls."""
        return f"{self.app}_{self.verb}"

    @property
    def is_look(self) -> bool:
        """Whether it changes nothing."""
        return self.verb.partition("_")[0] in ("list", "search", "show", "sign")


def _f(app: str, verb: str, parameters: str, text: str, effect: Effect | None = None) -> Function:
    return Function(app, verb, tuple(parameters.split()), text, effect)


_MAIL, _EVENT = ("folder", "sender", "subject", "day"), ("title", "day", "start", "place")
_PAYMENT = ("direction", "handle", "cents", "note", "day")
_REQUEST = ("direction", "handle", "cents", "note", "status")
_FILE, _SONG, _PERSON = ("folder", "name", "day"), ("title", "artist", "album", "year"), ("name", "role", "group")
_CARD = {name: f"{{{name}}}" for name in ("name", "role", "email", "phone", "handle", "group", "birthday")}
_ALL = (
    _f("accounts", "list", "page?", "List all accounts."),
    _f("accounts", "sign_in", "account", "Sign in to an account; returns its key."),
    _f("contacts", "list", "page?", "List all contacts.", do.lists("contacts", *_PERSON)),
    _f("contacts", "list_group", "group page?", "List a group.", do.lists("contacts", *_PERSON, where=("group",))),
    _f(
        *("contacts", "search", "query page?", "Search names, roles, addresses and handles."),
        do.searches("contacts", ("name", "role", "email", "handle"), *_PERSON),
    ),
    _f("contacts", "show", "contact", "Show all details of a contact.", do.shows("contacts", "contact")),
    _f("contacts", "create", " ".join(_CARD), "Add a contact.", do.adds("contacts", **_CARD)),
    _f(
        "contacts", "set_phone", "contact phone", "Set a phone number.", do.sets("contacts", "contact", phone="{phone}")
    ),
    _f("contacts", "set_email", "contact email", "Set an address.", do.sets("contacts", "contact", email="{email}")),
    _f("contacts", "set_group", "contact group", "Put into a group.", do.sets("contacts", "contact", group="{group}")),
    _f("contacts", "delete", "contact", "Delete a contact.", do.removes("contacts", "contact")),
    _f("mail", "list_folders", "", "List the folders.", do.names("mails", "folder")),
    _f("mail", "list", "folder page?", "List the mails of a folder.", do.lists("mails", *_MAIL, where=("folder",))),
    _f(
        *("mail", "search", "query page?", "Search senders, receivers, subjects and texts in all folders."),
        do.searches("mails", ("sender", "to", "subject", "text"), *_MAIL),
    ),
    _f("mail", "show", "mail", "Show a mail with its text.", do.shows("mails", "mail")),
    _f("mail", "send", "to subject text", "Send a mail.", do.sends),
    _f("mail", "reply", "mail text", "Answer a mail to its sender.", do.replies),
    _f("mail", "forward", "mail to", "Forward a mail as it is.", do.forwards),
    _f("mail", "move", "mail folder", "Move a mail to another folder.", do.sets("mails", "mail", folder="{folder}")),
    _f("mail", "delete", "mail", "Move a mail to the trash.", do.sets("mails", "mail", folder="trash")),
    _f("mail", "star", "mail", "Star a mail.", do.sets("mails", "mail", starred="yes")),
    _f("mail", "unstar", "mail", "Take the star off a mail.", do.sets("mails", "mail", starred="no")),
    _f("mail", "label", "mail label", "Label a mail.", do.sets("mails", "mail", label="{label}")),
    _f("calendar", "list", "page?", "List all events.", do.lists("events", *_EVENT)),
    _f("calendar", "list_day", "day page?", "List the events of a day.", do.lists("events", *_EVENT, where=("day",))),
    _f(
        *("calendar", "search", "query page?", "Search titles and places."),
        do.searches("events", ("title", "place"), *_EVENT),
    ),
    _f("calendar", "show", "event", "Show an event.", do.shows("events", "event")),
    _f(
        *("calendar", "create", "title day start minutes place", "Add an event."),
        do.adds("events", title="{title}", day="{day}", start="{start}", minutes="{minutes}", place="{place}"),
    ),
    _f(
        "calendar",
        "move",
        "event day start",
        "Move an event.",
        do.sets("events", "event", day="{day}", start="{start}"),
    ),
    _f("calendar", "rename", "event title", "Rename an event.", do.sets("events", "event", title="{title}")),
    _f("calendar", "set_place", "event place", "Set a place.", do.sets("events", "event", place="{place}")),
    _f("calendar", "set_length", "event minutes", "Set the length.", do.sets("events", "event", minutes="{minutes}")),
    _f("calendar", "delete", "event", "Cancel an event.", do.removes("events", "event")),
    _f("calendar", "list_guests", "event page?", "List guests.", do.lists("guests", "email", part_of="event")),
    _f("calendar", "add_guest", "event email", "Invite somebody.", do.joins("guests", "email")),
    _f("calendar", "remove_guest", "event email", "Take a guest off.", do.parts("guests", "email")),
    _f("notes", "list", "page?", "List all notes.", do.lists("notes", "title", "tag", "pinned")),
    _f("notes", "search", "query page?", "Search titles and texts.", do.searches("notes", ("title", "text"), "title")),
    _f("notes", "show", "note_id", "Show a note with its text.", do.shows("notes", "note_id")),
    _f(
        *("notes", "create", "title text", "Add a note."),
        do.adds("notes", title="{title}", text="{text}", tag="", pinned="no"),
    ),
    _f("notes", "write", "note_id text", "Replace the text of a note.", do.sets("notes", "note_id", text="{text}")),
    _f("notes", "append", "note_id text", "Add a line to a note.", do.appends("notes", "note_id")),
    _f("notes", "rename", "note_id title", "Rename a note.", do.sets("notes", "note_id", title="{title}")),
    _f("notes", "tag", "note_id tag", "Tag a note.", do.sets("notes", "note_id", tag="{tag}")),
    _f("notes", "pin", "note_id", "Pin a note.", do.sets("notes", "note_id", pinned="yes")),
    _f("notes", "unpin", "note_id", "Unpin a note.", do.sets("notes", "note_id", pinned="no")),
    _f("notes", "delete", "note_id", "Delete a note.", do.removes("notes", "note_id")),
    _f("pay", "show_balance", "", "Show the balance.", do.lists("wallets", "cents")),
    _f("pay", "list", "page?", "List all payments.", do.lists("payments", *_PAYMENT)),
    _f(
        "pay",
        "search",
        "query page?",
        "Search handles and notes.",
        do.searches("payments", ("handle", "note"), *_PAYMENT),
    ),
    _f("pay", "show", "payment", "Show a payment.", do.shows("payments", "payment")),
    _f("pay", "list_requests", "page?", "List all requests for payments.", do.lists("requests", *_REQUEST)),
    _f("pay", "show_request", "request", "Show a request.", do.shows("requests", "request")),
    _f("pay", "send", "handle cents note", "Pay somebody.", do.pays),
    _f(
        *("pay", "request", "handle cents note", "Request a payment from somebody."),
        do.adds("requests", direction="out", handle="{handle}", cents="{cents}", note="{note}", status="open"),
    ),
    _f("pay", "accept", "request", "Pay an open request of somebody.", do.accepts),
    _f("pay", "decline", "request", "Decline an open request of somebody.", do.closes("in", "declined")),
    _f("pay", "withdraw", "request", "Withdraw your own open request.", do.closes("out", "withdrawn")),
    _f("files", "list_folders", "", "List the folders.", do.names("files", "folder")),
    _f("files", "list", "folder page?", "List the files of a folder.", do.lists("files", *_FILE, where=("folder",))),
    _f("files", "search", "query page?", "Search names and texts.", do.searches("files", ("name", "text"), *_FILE)),
    _f("files", "show", "file", "Show a file with its text.", do.shows("files", "file")),
    _f(
        *("files", "create", "folder name text", "Add a file."),
        do.adds("files", folder="{folder}", name="{name}", text="{text}", day=do.TODAY),
    ),
    _f("files", "write", "file text", "Replace the text of a file.", do.sets("files", "file", text="{text}")),
    _f("files", "append", "file text", "Add a line to a file.", do.appends("files", "file")),
    _f("files", "rename", "file name", "Rename a file.", do.sets("files", "file", name="{name}")),
    _f("files", "move", "file folder", "Move a file to another folder.", do.sets("files", "file", folder="{folder}")),
    _f("files", "delete", "file", "Delete a file.", do.removes("files", "file")),
    _f("files", "list_shares", "file page?", "List who has access.", do.lists("shares", "email", part_of="file")),
    _f("files", "share", "file email", "Share a file with somebody.", do.joins("shares", "email")),
    _f("files", "unshare", "file email", "Stop sharing a file with somebody.", do.parts("shares", "email")),
    _f(
        *("music", "search", "query page?", "Search titles, artists and albums of all songs."),
        do.searches("songs", ("title", "artist", "album"), *_SONG, catalogue=True),
    ),
    _f("music", "show", "song", "Show a song.", do.shows("songs", "song")),
    _f(
        *("music", "list_artist", "artist page?", "List the songs of an artist."),
        do.lists("songs", *_SONG, where=("artist",), catalogue=True),
    ),
    _f(
        *("music", "list_album", "album page?", "List the songs of an album."),
        do.lists("songs", *_SONG, where=("album",), catalogue=True),
    ),
    _f("music", "list_playlists", "page?", "List your playlists.", do.lists("playlists", "name")),
    _f("music", "list_songs", "playlist page?", "List the songs of a playlist.", do.songs_of("tracks")),
    _f("music", "create_playlist", "name", "Add an empty playlist.", do.adds("playlists", name="{name}")),
    _f(
        *("music", "rename_playlist", "playlist name", "Rename a playlist."),
        do.sets("playlists", "playlist", name="{name}"),
    ),
    _f("music", "delete_playlist", "playlist", "Delete a playlist.", do.removes("playlists", "playlist")),
    _f("music", "add_song", "playlist song", "Add a song to a playlist.", do.joins("tracks", "song")),
    _f("music", "remove_song", "playlist song", "Take a song off a playlist.", do.parts("tracks", "song")),
    _f("music", "list_likes", "page?", "List the songs that you like.", do.songs_of("likes")),
    _f("music", "like", "song", "Like a song.", do.joins("likes", "song")),
    _f("music", "unlike", "song", "Like a song no more.", do.parts("likes", "song")),
)
FUNCTIONS: Mapping[str, Function] = {each.name: each for each in _ALL}
"""Name -> function."""
LIST_ACCOUNTS, SIGN_IN = _ALL[0].name, _ALL[1].name
