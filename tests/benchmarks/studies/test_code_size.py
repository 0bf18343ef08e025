"""The measures of the code base count what they say."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "checks"))

import code_size

SMALL = "def used(): ...\n"
SOURCES = {
    "envs/one.py": SMALL,
    "envs/two.py": "from turngym.envs.one import used\nimport turngym.envs.three\n__all__ = ['A']\nclass A: ...\n",
    "envs/three.py": "import turngym.envs.one as one\n_private = 1\n",
    "envs/__init__.py": "",
}


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    source = '"""Module."""\n\nclass A:\n    """Two\n    lines."""\n\n    x = """no\n    docstring"""  # comment\n'
    assert code_size.code_lines(source) == 3
    assert code_size.code_lines("") == 0


def test_small_modules_count_once_and_by_their_importers() -> None:
    assert code_size.with_one_importer(SOURCES) == ["envs/three.py"]
    assert code_size.with_one_importer({**SOURCES, "envs/three.py": "x = 1\n" * 60}) == ["envs/one.py"]


def test_names_in_all_and_private_ones_are_left_out() -> None:
    assert code_size.unlisted(SOURCES) == 1


def test_crowded_packages_are_those_with_over_sixteen_modules() -> None:
    sources = {f"envs/a{number}.py": "" for number in range(17)} | {"trainers/b.py": ""}
    assert code_size.crowded(sources) == {"envs": 17}
