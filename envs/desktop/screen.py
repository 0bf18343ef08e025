"""The X display as seen from inside the sandbox: its windows, its mouse and its keyboard."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from Xlib import X
from Xlib.display import Display
from Xlib.error import BadDrawable, BadWindow
from Xlib.ext import xtest
from Xlib.protocol.event import ClientMessage

from turngym.envs.desktop.keys import MODIFIERS, keysym

_SHIFT = MODIFIERS["shift"]
_DRAG_STEPS = 8
_GONE = (BadWindow, BadDrawable)
_BUTTONS = {"left": 1, "right": 3, "up": 4, "down": 5}


class Unresponsive(Exception):
    """A window does not answer."""


class Screen:
    """A connection to the display.

    Args:
        name: Name of the display.
    """

    def __init__(self, name: str) -> None:
        self._display = Display(name)
        self._root = self._display.screen().root
        self._root.change_attributes(event_mask=X.SubstructureNotifyMask)
        self._display.change_keyboard_control(auto_repeat_mode=X.AutoRepeatModeOff)
        self._spare: list[int] = []
        self._mapped: dict[int, int] = {}
        self._pings = 0
        self._find_spare_keys()

    def _atom(self, name: str) -> int:
        return int(self._display.intern_atom(name))

    def _values(self, window: Any, name: str) -> list[int]:
        found = window.get_full_property(self._atom(name), X.AnyPropertyType)
        return [] if found is None else [int(value) for value in found.value]

    def sync(self) -> None:
        """Wait until the display has processed all requests."""
        self._display.sync()

    # Windows.

    def has_manager(self) -> bool:
        """Return whether a window manager is running."""
        return bool(self._values(self._root, "_NET_SUPPORTING_WM_CHECK"))

    def clients(self) -> list[Any]:
        """Return the windows of programs, topmost first."""
        stacked = reversed(self._values(self._root, "_NET_CLIENT_LIST_STACKING"))
        return [self._display.create_resource_object("window", number) for number in stacked]

    def windows(self) -> list[dict[str, Any]]:
        """Return the visible windows and menus, topmost first."""
        active = (self._values(self._root, "_NET_ACTIVE_WINDOW") or [0])[0]
        found = [fact for window in reversed(self._root.query_tree().children) if (fact := self._menu(window))]
        for window in self.clients():
            try:
                place, size = window.translate_coords(self._root, 0, 0), window.get_geometry()
                found.append(
                    {
                        "title": self._title(window),
                        "kind": "dialog" if self._is_dialog(window) else "window",
                        "x": -place.x,
                        "y": -place.y,
                        "width": size.width,
                        "height": size.height,
                        "has_focus": window.id == active,
                    }
                )
            except _GONE:
                continue
        return found

    def _menu(self, window: Any) -> dict[str, Any] | None:
        try:
            attributes = window.get_attributes()
            size = window.get_geometry()
            shows = attributes.override_redirect and attributes.map_state == X.IsViewable
            if not shows or size.width * size.height < 64:
                return None
            kinds = self._values(window, "_NET_WM_WINDOW_TYPE")
        except _GONE:
            return None
        menus = {self._atom(f"_NET_WM_WINDOW_TYPE_{name}") for name in ("MENU", "POPUP_MENU", "DROPDOWN_MENU", "COMBO")}
        if not menus & set(kinds):
            return None
        place = {"x": size.x, "y": size.y, "width": size.width, "height": size.height}
        return {"title": "", "kind": "menu", **place, "has_focus": False}

    def _title(self, window: Any) -> str:
        found = window.get_full_property(self._atom("_NET_WM_NAME"), X.AnyPropertyType)
        raw = b"" if found is None else found.value
        text = raw.decode("utf8", errors="replace") if isinstance(raw, bytes) else str(raw)
        return text or str(window.get_wm_name() or "")

    def _is_dialog(self, window: Any) -> bool:
        return self._atom("_NET_WM_WINDOW_TYPE_DIALOG") in self._values(window, "_NET_WM_WINDOW_TYPE")

    def require_answers(self, limit_seconds: float) -> None:
        """Wait until every window has answered a ping, and so has seen all earlier events.

        Raises:
            Unresponsive: One does not answer in time.
        """
        self._pings += 1
        waiting: set[int] = set()
        ping, protocols = self._atom("_NET_WM_PING"), self._atom("WM_PROTOCOLS")
        for window in self.clients():
            try:
                if ping not in window.get_wm_protocols():
                    continue
                data = (32, [ping, self._pings, window.id, 0, 0])
                window.send_event(ClientMessage(window=window, client_type=protocols, data=data))
                waiting.add(window.id)
            except _GONE:
                continue
        self._display.flush()
        deadline = time.monotonic() + limit_seconds
        while waiting:
            for kind, values in self._messages(deadline):
                if kind == protocols and values[0] == ping and values[1] == self._pings:
                    waiting.discard(values[2])
            living = {window.id for window in self.clients()}
            waiting &= living
            if waiting and time.monotonic() > deadline:
                raise Unresponsive(f"a window does not answer within {limit_seconds:g} s")

    def _messages(self, deadline: float) -> Iterator[tuple[int, list[int]]]:
        """Wait for events, and return the messages among them."""
        if not self._display.pending_events():
            select.select([self._display.fileno()], [], [], max(0.0, min(0.2, deadline - time.monotonic())))
        for _ in range(self._display.pending_events()):
            event = self._display.next_event()
            if event.type & 0x7F == X.ClientMessage:
                yield event.client_type, list(event.data[1])

    # Mouse and keyboard.

    def _fake(self, kind: int, detail: int = 0, x: int = 0, y: int = 0) -> None:
        xtest.fake_input(self._display, kind, detail, x=x, y=y)

    def move(self, to: Sequence[int]) -> None:
        """Move the mouse."""
        self._fake(X.MotionNotify, 0, *to)

    def click(self, at: Sequence[int], button: str = "left", times: int = 1) -> None:
        """Move the mouse to a point and click there."""
        self.move(at)
        for _ in range(times):
            self._fake(X.ButtonPress, _BUTTONS[button])
            self._fake(X.ButtonRelease, _BUTTONS[button])
        self.sync()

    def drag(self, start: Sequence[int], end: Sequence[int]) -> None:
        """Press at one point, move to another in steps, release there."""
        self.move(start)
        self._fake(X.ButtonPress, 1)
        for step in range(1, _DRAG_STEPS + 1):
            self.move([a + (b - a) * step // _DRAG_STEPS for a, b in zip(start, end, strict=True)])
            self.sync()
        self._fake(X.ButtonRelease, 1)
        self.sync()

    def press(self, keysyms: Sequence[int]) -> None:
        """Hold all but the last key, press the last, release all."""
        *held, last = keysyms
        code, shifted = self._key(last)
        codes = [self._key(each)[0] for each in held]
        if shifted and _SHIFT not in held:
            codes.append(self._key(_SHIFT)[0])
        with self._held(codes):
            self._tap(code)
        self.sync()

    @contextmanager
    def _held(self, codes: Sequence[int]) -> Iterator[None]:
        for code in codes:
            self._fake(X.KeyPress, code)
        yield
        for code in reversed(codes):
            self._fake(X.KeyRelease, code)

    def _tap(self, code: int) -> None:
        self._fake(X.KeyPress, code)
        self._fake(X.KeyRelease, code)

    def parts(self, text: str) -> Iterator[str]:
        """Split a text into parts that can each be typed with the available spare keys."""
        part, strange = "", set[str]()
        for character in text:
            if not self._on_keyboard(character):
                strange.add(character)
            if len(strange) > len(self._spare):
                yield part
                part, strange = "", {character}
            part += character
        if part:
            yield part

    def prepare(self, part: str) -> bool:
        """Give spare keys to the characters that have none; returns whether that changed the keyboard."""
        strange = sorted({character for character in part if not self._on_keyboard(character)})
        symbols = [symbol for character in strange if (symbol := keysym(character)) is not None]
        if all(symbol in self._mapped for symbol in symbols):
            return False
        self._mapped = dict(zip(symbols, self._spare, strict=False))
        for symbol, code in self._mapped.items():
            self._display.change_keyboard_mapping(code, [(symbol,) * 2])
        self.sync()
        return True

    def type(self, part: str) -> None:
        """Type the text given to :meth:`prepare`."""
        shift = self._key(_SHIFT)[0]
        for character in part:
            symbol = keysym(character)
            if symbol is None:
                continue
            code, shifted = self._key(symbol)
            with self._held([shift] if shifted else []):
                self._tap(code)
        self.sync()

    def _on_keyboard(self, character: str) -> bool:
        symbol = keysym(character)
        return symbol is None or self._place(symbol) is not None

    def _place(self, symbol: int) -> tuple[int, bool] | None:
        """Return the key and whether it needs shift, for characters of the original keyboard."""
        found = [(index, code) for code, index in self._display.keysym_to_keycodes(symbol) if index in (0, 1)]
        found = [pair for pair in found if pair[1] not in self._spare]
        return (min(found)[1], bool(min(found)[0])) if found else None

    def _key(self, symbol: int) -> tuple[int, bool]:
        if symbol in self._mapped:
            return self._mapped[symbol], False
        return self._place(symbol) or (0, False)

    def _find_spare_keys(self) -> None:
        information = self._display.display.info
        first, last = information.min_keycode, information.max_keycode
        table = self._display.get_keyboard_mapping(first, last - first + 1)
        self._spare = [first + number for number, symbols in enumerate(table) if not any(symbols)]
