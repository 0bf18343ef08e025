"""TextWorldExpress for tests: a module that imports this skips where the package or Java is missing."""

import shutil
from collections.abc import Iterator

import pytest

from turngym.envs.textworlds.textworld_express.env import TextWorldExpress

pytest.importorskip("textworld_express", reason="needs the optional package textworld-express")
if shutil.which("java") is None:
    pytest.skip("needs a Java runtime on the PATH", allow_module_level=True)

EASY_MAP = "numLocations=3,maxDistanceApart=2,maxDistractorItemsPerLocation=0,includeDoors=0"


@pytest.fixture(scope="module")
def easy() -> Iterator[TextWorldExpress]:
    """Three rooms with a map."""
    env = TextWorldExpress(game="mapreader", params=EASY_MAP, max_turns=12)
    yield env
    env.close()
