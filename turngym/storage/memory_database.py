"""SQLite databases in memory."""

from __future__ import annotations

import sqlite3


class MemoryDatabase(sqlite3.Connection):
    """A connection that is closed with its last reference: since Python 3.13 an open one warns then.

    Any one thread at a time may use it; statements are not put into transactions.
    """

    def __init__(self) -> None:
        super().__init__(":memory:", isolation_level=None, check_same_thread=False)

    def __del__(self) -> None:
        """Close the database."""
        self.close()
