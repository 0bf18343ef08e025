"""Images of training: the learning curve of one run, and those of several methods side by side."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.agents.intervals import Estimate
from turngym.arithmetic import as_float
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.findings import RunData, Stage, read_run, success_interval, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito (2008), which people with any colour vision can tell apart; its yellow is too pale.
BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#000000",
)
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("solid", "dashed", "dashdot", "dotted")
_GRID_POINTS = 200
SIZE = (5.8, 4.1)  # inches; small, so that text stays legible where the image is shown small
PIXELS_PER_INCH = 200
_STAGE_STYLE: Mapping[Stage, tuple[str, str, str]] = {
    "before": ("warm-up", VERMILION, "dashed"),
    "control": ("control", GREEN, "dashdot"),
    "after": ("trained", BLUE, "solid"),
}

# Two-sided 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (any statistical table).
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


class Point(NamedTuple):
    """One point of a learning curve.

    Args:
        turns: Environment turns of training so far.
        value: Share of successes.
        low: Lower end of its interval, nan if there is none.
        high: Upper end.
    """

    turns: float
    value: float
    low: float
    high: float


class MeanCurve(NamedTuple):
    """The mean of several curves, with a 95 % interval of the mean over seeds; nan with a single seed."""

    turns: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def curve_points(metrics: Sequence[Mapping[str, object]], key: str) -> list[Point]:
    """Return a metric over environment turns where it is recorded and finite.

    >>> curve_points([{"turns_total": 64, "eval/success": 0.5}, {"turns_total": 128}], "eval/success")
    [Point(turns=64.0, value=0.5, low=nan, high=nan)]
    """
    found = []
    for record in metrics:
        turns, value = _number(record.get("turns_total")), _number(record.get(key))
        if math.isfinite(turns) and math.isfinite(value):
            found.append(Point(turns, value, _number(record.get(f"{key}_low")), _number(record.get(f"{key}_high"))))
    return found


def _number(value: object) -> float:
    return as_float(value) if isinstance(value, int | float) else math.nan


def moving_average(values: Sequence[float], window: int) -> list[float]:
    """Return the mean of each value and those before it, ``window`` of them at most.

    >>> moving_average([1.0, 3.0, 5.0], 2)
    [1.0, 2.0, 4.0]
    """
    parts = [values[max(0, i + 1 - window) : i + 1] for i in range(len(values))]
    return [sum(part) / len(part) for part in parts]


def mean_curve(curves: Sequence[Sequence[Point]]) -> MeanCurve | None:
    """Return the mean of curves where all of them are defined, interpolated linearly on a common grid.

    The band is ``mean ± t * s / sqrt(n)`` with Student's quantile and the standard deviation between seeds, kept inside
    of [0, 1]. None if the curves do not overlap.
    """
    known = [curve for curve in curves if curve]
    if not known:
        return None
    start, stop = max(c[0].turns for c in known), min(c[-1].turns for c in known)
    if start > stop:
        return None
    grid = np.linspace(start, stop, _GRID_POINTS)
    table = np.array([np.interp(grid, [p.turns for p in c], [p.value for p in c]) for c in known])
    mean = table.mean(0)
    if len(known) == 1:
        return MeanCurve(grid, mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    quantile = _STUDENT[len(known) - 2] if len(known) - 1 <= len(_STUDENT) else 1.96
    half = quantile * table.std(0, ddof=1) / math.sqrt(len(known))
    return MeanCurve(grid, mean, np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1))


def write_curve(folder: RunFolder) -> Path:
    """Plot the learning curve of a run into its ``curve.png``, without absent parts."""
    target = folder.path / "curve.png"
    write_atomic(target, curve_picture(read_run(folder)))
    return target


def curve_picture(run: RunData) -> bytes:
    """Return the learning curve of a run as PNG."""
    figure = _empty_figure()
    levels = _levels(run)
    if levels:
        axes, side = figure.subplots(1, 2, sharey=True, width_ratios=(4, 0.55 * len(levels)))
        _draw_levels(axes, side, levels, f"test split,\n{run.mode} actions")
    else:
        axes = figure.subplots()
    _draw_run(axes, run)
    heights = [p.value for key in ("eval/success", "rollout/success") for p in curve_points(run.metrics, key)]
    heights += [p.high for p in curve_points(run.metrics, "eval/success") if math.isfinite(p.high)]
    _success_axes(axes, [*heights, *(success_interval(estimate)[1] for _, estimate in levels)])
    _legend(figure, axes)
    figure.suptitle(_plain(title_of(run.config)))
    return _png(figure)


def _empty_figure() -> Figure:
    """Return a figure; importing matplotlib takes a second, which processes that draw nothing save."""
    from matplotlib.figure import Figure

    return Figure(figsize=SIZE, dpi=PIXELS_PER_INCH, layout="constrained")


def _levels(run: RunData) -> list[tuple[Stage, Estimate]]:
    if run.mode is None:
        return []
    found = ((stage, run.evaluation(stage, run.mode)) for stage in _STAGE_STYLE)
    return [(stage, result.success) for stage, result in found if result]


def _draw_run(axes: Axes, run: RunData) -> None:
    training, evaluated = curve_points(run.metrics, "rollout/success"), curve_points(run.metrics, "eval/success")
    turns = [p.turns for p in training]
    if training:
        window = max(1, min(10, len(training) // 5))
        axes.plot(turns, [p.value for p in training], color=BLACK, alpha=0.2, linewidth=0.8, label="training")
        smooth = moving_average([p.value for p in training], window)
        label = f"training, mean of {window} iterations"
        axes.plot(turns, smooth, color=BLACK, alpha=0.65, linewidth=1.6, label=label)
    if evaluated:
        turns = [p.turns for p in evaluated]
        axes.fill_between(
            turns, [p.low for p in evaluated], [p.high for p in evaluated], color=BLUE, alpha=0.2, linewidth=0
        )
        values = [p.value for p in evaluated]
        axes.plot(
            turns, values, color=BLUE, linewidth=2.4, marker="o", markersize=4.5, label="dev split, 95 % interval"
        )
    if not training and not evaluated:
        _say(axes, "no iteration has been recorded yet")


def _draw_levels(axes: Axes, side: Axes, levels: Sequence[tuple[Stage, Estimate]], title: str) -> None:
    """Mark each policy's level on the test split: its interval next to the curve, and a line across the curve."""
    for position, (stage, estimate) in enumerate(levels):
        _, colour, dashes = _STAGE_STYLE[stage]
        low, high = success_interval(estimate)
        side.plot([position, position], [low, high], color=colour, linewidth=2.4)
        side.plot([position], [estimate.value], color=colour, marker="o", markersize=7)
        number, paper = f"{100 * estimate.value:.0f}", {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        side.annotate(number, (position, high), (0, 4), textcoords="offset points", ha="center", bbox=paper)
        if stage != "after":
            for each in (axes, side):
                each.axhline(estimate.value, color=colour, linestyle=dashes, linewidth=1.4, zorder=1)
    side.set_xlim(-0.6, len(levels) - 0.4)
    side.set_xticks(range(len(levels)), [_STAGE_STYLE[stage][0] for stage, _ in levels], rotation=60)
    for label, (stage, _) in zip(side.get_xticklabels(), levels, strict=True):
        label.set_color(_STAGE_STYLE[stage][1])
    side.set_title(title, fontsize="medium")
    side.spines[["top", "right"]].set_visible(False)
    side.tick_params(left=False)


def write_curves(named: Mapping[str, Sequence[Path]], target: Path, title: str) -> Path:
    """Plot the learning curves of several methods: one colour per method, thin lines for seeds, the mean with its band.

    Args:
        named: Method -> folders of its runs, one per seed.
        target: The PNG file.
        title: Title of the figure.

    Raises:
        ConfigError: There is no method.
        CheckpointError: A folder holds no run.
    """
    if not named:
        raise ConfigError("there is no method to draw: name at least one, with the folders of its runs.")
    curves = {
        method: [curve_points(read_run(RunFolder.open(folder)).metrics, "eval/success") for folder in folders]
        for method, folders in named.items()
    }
    write_atomic(target, curves_picture(curves, title))
    return target


def curves_picture(curves: Mapping[str, Sequence[Sequence[Point]]], title: str) -> bytes:
    """Return the learning curves of several methods as PNG."""
    figure = _empty_figure()
    axes = figure.subplots()
    for number, (method, seeds) in enumerate(curves.items()):
        dashes = DASHES[number % len(DASHES)]
        _draw_method(axes, method, [seed for seed in seeds if seed], COLOURS[number % len(COLOURS)], dashes)
    if not any(points for seeds in curves.values() for points in seeds):
        _say(axes, "no evaluation has been recorded yet")
    _success_axes(axes, [point.value for seeds in curves.values() for points in seeds for point in points])
    _legend(figure, axes)
    axes.set_ylabel("success on the dev split (%)")
    figure.suptitle(_plain(title))
    return _png(figure)


def _draw_method(axes: Axes, method: str, seeds: Sequence[Sequence[Point]], colour: str, dashes: str) -> None:
    for points in seeds:
        axes.plot([p.turns for p in points], [p.value for p in points], color=colour, alpha=0.35, linewidth=0.8)
    mean = mean_curve(seeds)
    if not seeds:
        label = f"{method} (no evaluation)"
    else:
        label = f"{method} ({len(seeds)} seed{'' if len(seeds) == 1 else 's'})"
    if mean is None:
        axes.plot([], [], color=colour, linestyle=dashes, linewidth=2.4, label=_plain(label))
        return
    axes.plot(mean.turns, mean.mean, color=colour, linestyle=dashes, linewidth=2.4, label=_plain(label))
    axes.fill_between(mean.turns, mean.low, mean.high, color=colour, alpha=0.15, linewidth=0)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)


def _plain(text: str) -> str:
    r"""Return text in which no dollar sign starts a formula.

    >>> _plain("a$b")
    'a\\$b'
    """
    return text.replace("$", r"\$")


def _say(axes: Axes, sentence: str) -> None:
    axes.text(0.5, 0.5, sentence, transform=axes.transAxes, ha="center", va="center")


def _success_axes(axes: Axes, heights: Sequence[float]) -> None:
    """Label the axes; the y axis starts at 0 and contains all data."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    top = min(1.0, max(0.2, 1.15 * max(heights, default=1.0)))
    axes.set_ylim(0, top * 1.06)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axes.set_xlabel("environment turns of training")
    axes.set_ylabel("success (%)")
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _short(value: float) -> str:
    """Return a number of turns in a few characters.

    >>> _short(0), _short(1500), _short(250_000), _short(2_000_000)
    ('0', '1.5k', '250k', '2M')
    """
    for size, unit in ((1_000_000, "M"), (1000, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _png(figure: Figure) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)  # type: ignore[no-untyped-call]
    return buffer.getvalue()
