"""What ``import turngym`` costs beside ``import gymnasium``: fresh processes, interleaved, medians."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

REPEATS = 9
TARGET = Path(__file__).parents[2] / "results" / "import_cost.json"
SCRIPT = (
    "import time, sys; start = time.perf_counter(); import {name}; spent = time.perf_counter() - start;"
    "print(spent, [heavy for heavy in ('torch', 'transformers') if heavy in sys.modules])"
)


def measure(name: str) -> tuple[float, list[str]]:
    """Return the seconds that one fresh process spends on an import, and which heavy packages came along."""
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(name=name)], capture_output=True, text=True, check=True)
    seconds, _, heavy = done.stdout.strip().partition(" ")
    return float(seconds), json.loads(heavy.replace("'", '"'))


def main() -> int:
    """Measure, print, and write ``benchmarks/results/import_cost.json``."""
    names = ("gymnasium", "turngym")
    for name in names:
        measure(name)  # fills the file cache
    found: dict[str, list[float]] = {name: [] for name in names}
    heavy: list[str] = []
    for _ in range(REPEATS):
        for name in names:
            seconds, along = measure(name)
            found[name].append(seconds)
            heavy += along
    medians = {name: statistics.median(values) for name, values in found.items()}
    extra = medians["turngym"] - medians["gymnasium"]
    result = {
        "median_seconds": medians,
        "extra_seconds": extra,
        "heavy_imports": heavy,
        "repeats": REPEATS,
        "python": platform.python_version(),
    }
    TARGET.write_text(json.dumps(result, indent=2) + "\n", "utf8")
    shown = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in medians.items())
    print(f"{shown}, extra {extra:.3f} s, heavy {heavy}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
