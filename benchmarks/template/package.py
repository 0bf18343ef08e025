"""A whole package that can be installed: the game of the template, a suite of it, and the entry points for both."""

from __future__ import annotations

_PYPROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "turngym-{dashed}"
version = "0.1.0"
description = "{words}: an environment for turngym."
requires-python = ">=3.11"
dependencies = ["turngym"]

[project.entry-points."turngym.plugins"]
environments = "{module}:environments"
suites = "{module}.suites"

# Found by gymnasium.make after `import turngym`, which reads these lines and imports nothing of this package.
[project.entry-points."turngym.environments"]
"{module}/{name}-v0" = "{module}.game:{name}"
"{module}/{name}Hard-v0" = "{module}.game:{name}Hard"

[tool.setuptools]
packages = ["{module}"]
"""

_INIT = '''"""{words}: an environment for turngym, which finds it through the entry points of pyproject.toml."""

from turngym.envs.registration import register_env


def environments() -> None:
    """Register the environments by their places, so that listing them imports none of them."""
    place = "{module}.game:{name}"
    register_env("{module}/{name}-v0", place, summary="Find a hidden treasure.")
    register_env("{module}/{name}Hard-v0", f"{{place}}Hard", summary="The same on a field of 16.")
'''

_SECOND = '''

class {name}Hard({name}):
    """The same on a field of 16."""

    class Options({name}.Options):
        """The same options, with another default."""

        size: Annotated[int, between(8, 20)] = 16
        """Cells along each side of the field."""

    options: Options
'''

_OF_TOOLS = (  # what differs where the environment has tools and pictures
    ("Hard", "Picture"),
    ("The same on a field of 16.", "The same with pictures."),
    ("size: Annotated[int, between(8, 20)] = 16", "image: bool = True"),
    ("Cells along each side of the field.", "Whether the observation has the picture."),
    ("both sizes", "both forms"),
)

SUITES = '''"""The suite of this package: `turngym eval {module} --agent random`."""

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("{module}")(
    Suite(
        name="{module}",
        version=1,
        description="{words} in both sizes.",
        entries=(
            SuiteEntry("{module}/{name}-v0", episodes=6),
            SuiteEntry("{module}/{name}Hard-v0", episodes=20),
        ),
    )
)
'''

README = """# {words}

    pip install -e .
    turngym list environments
    turngym check {module}/{name}-v0
    turngym play {module}/{name}-v0
    turngym eval {module} --agent expert
    turngym train --env {module}/{name}-v0
    python -m pytest tests
"""


def files(name: str, module: str, words: str, game: str, test: str, tools: bool = False) -> dict[str, str]:
    r"""Return path -> content of every file of the package.

    Args:
        name: Name of the class.
        module: Name of the package.
        words: The name for readers.
        game: Source of a game that registers itself, under the new name.
        test: Source of its test.
        tools: Whether it is the game with tools and pictures.

    >>> sorted(files("LockPicker", "lock_picker", "Lock Picker", "import gymnasium\nENV_ID = 1", ""))[0]
    'README.md'
    """
    fields = {"name": name, "module": module, "words": words, "dashed": module.replace("_", "-")}
    unregistered = game.partition("\nENV_ID = ")[0].replace("import gymnasium\n", "").rstrip() + "\n"

    def filled(text: str) -> str:
        text = text.format(**fields)
        for old, new in _OF_TOOLS if tools else ():
            text = text.replace(old, new)
        return text

    return {
        "README.md": README.format(**fields),
        "pyproject.toml": filled(_PYPROJECT),
        f"{module}/__init__.py": filled(_INIT),
        f"{module}/game.py": unregistered + filled(_SECOND),
        f"{module}/suites.py": filled(SUITES),
        f"tests/test_{module}.py": test.replace(f"from {module} import", f"from {module}.game import"),
    }
