"""Databases in memory are closed with their last reference: Python 3.13 warns of those that are not."""

import gc
import sqlite3
import warnings

import pytest

from turngym.envs.search.documents import Document
from turngym.envs.search.engines.fts5 import FTS5Retriever
from turngym.envs.website.store import Store, make_world


def test_databases_that_nobody_uses_any_more_are_closed() -> None:
    retriever = FTS5Retriever([Document("1", "Rivers", "The Danube is long.")])
    assert retriever.search(["danube"], 1)[0]
    store = Store()
    store.reset(make_world("w", {"note": ("text",)}, {"note": [(1, "milk")]}))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        del retriever, store
        gc.collect()
    assert not [each for each in found if issubclass(each.category, ResourceWarning)]


def test_a_database_of_a_world_that_is_replaced_is_closed() -> None:
    store = Store()
    before = store.database
    store.reset(make_world("w", {"note": ("text",)}, {"note": [(1, "milk")]}))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        before.execute("SELECT 1")
