"""MiniWoB's pages for tests: a module that imports this skips where there are no pages or no browser to show them."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.thread import close_shared_pool
from turngym.envs.web.miniwob.env import MiniWoB
from turngym.envs.web.miniwob.tasks import pages_folder
from turngym.errors import MissingExtra

pytest.importorskip("playwright", reason="needs the optional package playwright")
if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
try:
    pages_folder()
except MissingExtra as error:
    pytest.skip(str(error), allow_module_level=True)

Make = Callable[..., MiniWoB]


@pytest.fixture(scope="module", autouse=True)
def pool() -> Iterator[None]:
    yield
    close_shared_pool()


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[MiniWoB] = []

    def maker(task: Any = "click-button", **options: Any) -> MiniWoB:
        made.append(MiniWoB(task, **options))
        return made[-1]

    yield maker
    for env in made:
        env.close()
