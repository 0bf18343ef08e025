"""Where turngym cannot run at all, the command ends with one sentence, and an import raises it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from turngym.interpreter import FOLDERS, PACKAGES

ROOT = Path(__file__).parents[2]
OLD_VERSION = "import sys; sys.version_info = (3, 10, 13, 'final', 0); "
AS_COMMAND = "sys.orig_argv = ['python', '-m', 'turngym']; "
LOST_LINKS = "turngym/agents is not a folder: this checkout lost its symbolic links. Unpack the archive with tar"


def run(code: str, checkout: Path = ROOT) -> tuple[int, str]:
    """Run code in a Python that has no package but the checkout; returns its exit status and standard error."""
    words = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(checkout)!r}); {code}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def without_links(folder: Path) -> Path:
    """Return a checkout as an archive leaves it that is unpacked where there are no symbolic links."""
    shutil.copytree(ROOT / "turngym", folder / "turngym", ignore=lambda _, names: set(names) & set(FOLDERS))
    for name in FOLDERS:
        (folder / "turngym" / name).write_text(f"../{name}")
    return folder


CASES: dict[str, tuple[str, str]] = {
    "dependencies": ("", f"turngym needs the packages {', '.join(PACKAGES)}, which are not installed in"),
    "version": (OLD_VERSION, "turngym needs Python 3.11 or newer, got 3.10: use python3.11 or newer."),
    "links": ("", LOST_LINKS),
}


@pytest.mark.parametrize("case", CASES)
def test_the_command_ends_with_one_sentence_and_an_import_raises_it(case: str, tmp_path: Path) -> None:
    checkout = without_links(tmp_path) if case == "links" else ROOT
    code, sentence = CASES[case]
    status, err = run(f"{code}{AS_COMMAND}import turngym", checkout)
    assert status == 1 and err.startswith(f"error: {sentence}") and len(err.splitlines()) == 1, err
    status, err = run(f"{code}import turngym", checkout)
    assert status == 1 and err.splitlines()[-1].startswith(f"ImportError: {sentence}"), err


def test_the_module_is_run_without_its_dependencies(tmp_path: Path) -> None:
    words = [sys.executable, "-S", "-m", "turngym", "list"]
    done = subprocess.run(words, cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "pip install turngym" in done.stderr


def test_the_packages_are_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    assert [each.partition(">=")[0] for each in project["dependencies"]] == list(PACKAGES)
    assert project["requires-python"] == ">=3.11"


def test_the_check_itself_is_read_by_older_versions_of_python() -> None:
    import ast

    for name in ("__init__.py", "interpreter.py", "terminal/__init__.py", "terminal/interrupted.py"):
        file = ROOT / "turngym" / name
        if file.exists():
            ast.parse(file.read_text("utf8"), feature_version=(3, 10))


def test_a_file_in_the_working_directory_is_no_package_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "gymnasium.py").write_text("raise SystemExit('imported from the working directory')")
    words = [sys.executable, "-m", "turngym", "--version"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("turngym "), done.stderr


def test_a_folder_with_a_checkout_named_turngym_is_named(tmp_path: Path) -> None:
    """Python takes the checkout for a namespace package there, before it looks for an editable installation."""
    (tmp_path / "turngym").symlink_to(ROOT)
    python = [sys.executable, "-c", "import turngym; print(turngym.__file__)"]
    found = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    if found != "None\n":
        pytest.skip("turngym is not installed by the finder of an editable installation")
    call = [sys.executable, "-m", "turngym", "list"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "contains a checkout named turngym" in done.stderr
    assert "run the command `turngym`" in done.stderr
