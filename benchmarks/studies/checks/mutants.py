"""Share of small faults in core files that the tests notice, in this checkout and, for comparison, in an older one.

A mutant changes one line: an order (``<`` and ``<=``), a sign, a factor, a boolean operator, a small number or a
condition. Only lines that both checkouts hold exactly once in the file are changed, so both test the same faults. A
mutant is killed when a test fails or runs longer than the limit.

    python benchmarks/studies/checks/mutants.py --before FOLDER --out FILE
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from turngym.storage.files import write_json

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 900
TESTS = {  # file -> what tests it, cheap tests first
    "trainers/functional/baselines.py": ("tests/trainers/functional", "tests/trainers/core"),
    "trainers/functional/gae.py": ("tests/trainers/functional", "tests/trainers/core"),
    "trainers/functional/kl.py": ("tests/trainers/functional", "tests/trainers/core"),
    "trainers/functional/losses.py": ("tests/trainers/functional", "tests/trainers/core"),
    "trainers/core/turn_table.py": ("tests/trainers/core", "tests/trainers/functional", "tests/trainers/records"),
    "trainers/core/rows.py": ("tests/trainers/core", "tests/trainers/functional"),
    "envs/vector/slots/slot.py": ("tests/envs/vector",),
    "envs/vector/base.py": ("tests/envs/vector",),
    "wrappers/rewards/normalize_reward.py": ("tests/wrappers",),
    "benchmarks/evaluation/comparison.py": ("tests/benchmarks/evaluation", "tests/benchmarks/statistics"),
}
_SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.And: "or",
    ast.Or: "and",
}


def changes(source: str) -> Iterator[tuple[int, str]]:
    """Yield the number of a line and the line with a fault, for every place that has one."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        for left, right, new in _places(node):
            if left.end_lineno == right.lineno:
                line = lines[right.lineno - 1]
                between = line[left.end_col_offset : right.col_offset]
                closing = len(between) - len(between.lstrip(") "))
                opening = len(between) - len(between.rstrip("( "))
                yield (
                    right.lineno,
                    line[: left.end_col_offset]
                    + between[:closing]
                    + new
                    + between[len(between) - opening :]
                    + line[right.col_offset :],
                )
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            line = lines[node.lineno - 1]
            yield node.lineno, f"{line[: node.col_offset]}{node.value + 1}{line[node.end_col_offset :]}"


def _places(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        yield node.left, node.comparators[0], _SWAPS[type(node.ops[0])]
    elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        yield node.left, node.right, _SWAPS[type(node.op)]
    elif isinstance(node, ast.BoolOp):
        yield node.values[0], node.values[1], _SWAPS[type(node.op)]


def mutants(file: str, count: int, before: Path) -> list[tuple[str, str]]:
    """Draw pairs of a line and the line with a fault; every line stands once in both checkouts and is drawn once."""
    source, old = ((folder / file).read_text("utf8").splitlines() for folder in (ROOT, before))
    found: dict[str, list[str]] = {}
    for number, changed in changes("\n".join(source)):
        line = source[number - 1]
        if source.count(line) == old.count(line) == 1 and _parses(source, number, changed):
            found.setdefault(line, []).append(changed)
    draw = random.Random(file)
    return [(line, draw.choice(found[line])) for line in draw.sample(sorted(found), min(count, len(found)))]


def _parses(source: list[str], number: int, changed: str) -> bool:
    try:
        ast.parse("\n".join([*source[: number - 1], changed, *source[number:]]))
    except SyntaxError:
        return False
    return True


def killed(folder: Path, file: str, line: str, changed: str) -> str:
    """Return the test that fails with the fault, or an empty text; the file is put back."""
    path = folder / file
    source = path.read_text("utf8")
    path.write_text(source.replace(f"{line}\n", f"{changed}\n", 1), "utf8")
    try:
        examples = [str(folder / ".venv/bin/python"), "-m", "doctest", str(path)]
        if subprocess.run(examples, cwd=folder, capture_output=True, check=False).returncode:
            return f"examples of {file}"
        for tests in TESTS[file]:
            if failed := _failure(folder, tests):
                return failed
    finally:
        path.write_text(source, "utf8")
    return ""


def _failure(folder: Path, tests: str) -> str:
    call = [str(folder / ".venv/bin/python"), "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", tests]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            call, cwd=folder, env=settings, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{tests}: over {LIMIT_S} s"
    if done.returncode not in (0, 1, 2):  # 2: an import failed
        raise RuntimeError(f"{tests} could not run: {done.stdout[-500:]}{done.stderr[-500:]}")
    named = [text for text in done.stdout.splitlines() if text.startswith(("FAILED", "ERROR"))]
    return (named or [f"{tests}: rc {done.returncode}"])[0][:200] if done.returncode else ""


def main() -> None:
    """Run every mutant in both checkouts; a result that the file holds already is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="an older checkout with a .venv that imports it")
    parser.add_argument("--out", type=Path, required=True, help="JSON with every mutant; continued where it exists")
    parser.add_argument("--each", type=int, default=4, help="mutants a file")
    options = parser.parse_args()
    rows = json.loads(options.out.read_text("utf8"))["mutants"] if options.out.exists() else []
    known = {(row["file"], row["line"]) for row in rows}
    for file in TESTS:
        for line, changed in mutants(file, options.each, options.before.resolve()):
            if (file, line) in known:
                continue
            row = {"file": file, "line": line, "changed": changed}
            for name, folder in (("now", ROOT), ("before", options.before.resolve())):
                row[name] = killed(folder, file, line, changed)
            rows.append(row)
            counts = {name: sum(bool(row[name]) for row in rows) for name in ("now", "before")}
            write_json(options.out, {"mutants_run": len(rows), "killed": counts, "mutants": rows})
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
