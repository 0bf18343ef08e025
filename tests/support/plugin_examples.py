"""What the tests of the plug-ins share: loading the examples, which are scripts beside each other and no package."""

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "trainers" / "integrations" / "examples"


def example(name: str) -> Any:
    """Import an example; the frameworks warn while they are imported, and no warning of theirs is ours."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def code_lines(name: str) -> int:
    """Return how many lines an example has."""
    return len((EXAMPLES / f"{name}.py").read_text("utf8").splitlines())
