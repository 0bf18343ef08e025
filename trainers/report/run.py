"""The report of a training run: one HTML file that needs nothing else, and the headline for the command line.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     headline(RunFolder(Path(folder)))["sentence"]
'This run has no evaluation on held-out instances, so it does not show what training did.'
"""

from __future__ import annotations

from pathlib import Path

from turngym.storage.files import write_atomic
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import curve_picture
from turngym.trainers.report.findings import read_run
from turngym.trainers.report.headline import headline
from turngym.trainers.report.page import page
from turngym.types import StrPath

__all__ = ["headline", "write_report"]


def write_report(folder: RunFolder, target: StrPath | None = None, curve: StrPath | None = None) -> Path:
    """Write the report: what the run shows in words, tables, the learning curve, and trajectories to read.

    It is always written; what the folder lacks, or holds damaged, is named on the page.

    Args:
        folder: The run.
        target: The file; ``report.html`` in the folder unless given.
        curve: The image of the learning curve, where :func:`turngym.trainers.report.curve.write_curve` has drawn it.
    """
    run = read_run(folder)
    file = Path(target) if target is not None else folder.path / "report.html"
    picture = None
    if run.metrics or run.evaluations:
        picture = Path(curve).read_bytes() if curve else curve_picture(run)
    write_atomic(file, page(run, picture))
    return file
