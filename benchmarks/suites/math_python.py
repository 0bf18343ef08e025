"""Mathematical problems with a Python interpreter, at three levels."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("math-python")(
    Suite(
        name="math-python",
        version=2,
        description="100 generated problems at each of three levels, with an interpreter, and 100 easy ones without.",
        entries=tuple(
            SuiteEntry(f"turngym/{name}", episodes=100)
            for name in ("MathPythonEasy-v0", "MathPython-v0", "MathPythonHard-v0", "MathPythonNoTool-v0")
        ),
        metric="success",
        protocol=(
            "Default options: 6 turns with the interpreter, 3 without; one attempt at each problem. Problems are those "
            "of the test split. Answers are compared as numbers, which must be worked out: a formula is no answer. "
            "Code runs in a sandbox, which must be there."
        ),
    )
)
