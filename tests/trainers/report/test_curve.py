"""The pictures of training: what goes into them, and that they are pictures."""

import io
import math
import statistics
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray
from synthetic_runs import metrics_record, run_folder

from turngym.errors import CheckpointError, ConfigError
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report import curve as C
from turngym.trainers.report.findings import read_run
from turngym.trainers.settings.config import TrainConfig

OUTCOMES = {"warmup-sampled": [0, 1] * 20, "final-sampled": [1] * 40, "control-sampled": [0, 1, 1, 1] * 10}


def pixels(png: bytes | Path) -> NDArray[np.float64]:
    picture = np.asarray(imread(io.BytesIO(png) if isinstance(png, bytes) else png), dtype=np.float64)[..., :3]
    assert picture.shape == (round(C.SIZE[1] * C.PIXELS_PER_INCH), round(C.SIZE[0] * C.PIXELS_PER_INCH), 3)
    return picture


def has_colour(picture: NDArray[np.float64], colour: str) -> bool:
    """Whether a few dozen pixels have this colour at least, exactly."""
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return int((np.abs(picture - wanted).max(-1) < 1e-3).sum()) > 30


def points(*pairs: tuple[float, float]) -> list[C.Point]:
    return [C.Point(turns, value, math.nan, math.nan) for turns, value in pairs]


def test_the_curve_of_a_run_is_a_picture_with_every_line_in_it(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", OUTCOMES)
    target = C.write_curve(folder)
    assert target == tmp_path / "run" / "curve.png"
    picture = pixels(target)
    for colour in (C.BLUE, C.VERMILION, C.GREEN):  # the trained policy, the warm-up, the control
        assert has_colour(picture, colour)


def test_a_run_without_control_has_no_line_for_it(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {k: v for k, v in OUTCOMES.items() if k != "control-sampled"})
    picture = pixels(C.write_curve(folder))
    assert has_colour(picture, C.VERMILION)
    assert not has_colour(picture, C.GREEN)


def test_a_run_without_evaluations_still_shows_training(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {})
    picture = pixels(C.write_curve(folder))
    assert has_colour(picture, C.BLUE)
    assert not has_colour(picture, C.VERMILION)


def test_an_empty_run_gives_a_picture_that_says_so(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", TrainConfig())
    picture = pixels(C.write_curve(folder))
    assert not has_colour(picture, C.BLUE)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 1


def test_one_point_without_interval_is_drawn(tmp_path: Path) -> None:
    """An interval may be absent, and one point is not a line: both must neither warn nor vanish."""
    folder = RunFolder.create(tmp_path / "run", TrainConfig())
    folder.append_metrics({"iteration": 0, "turns_total": 100, "eval/success": 0.5})
    assert has_colour(pixels(C.write_curve(folder)), C.BLUE)


def test_the_same_run_gives_the_same_picture(tmp_path: Path) -> None:
    run = read_run(run_folder(tmp_path / "run", OUTCOMES))
    assert C.curve_picture(run) == C.curve_picture(run)


def test_points_are_the_records_that_carry_the_metric() -> None:
    records = [metrics_record(i) for i in range(10)]
    records[4]["eval/success"] = math.nan
    found = C.curve_points(records, "eval/success")
    assert [point.turns for point in found] == [500, 4500]
    assert found[1] == (
        4500,
        records[8]["eval/success"],
        records[8]["eval/success_low"],
        records[8]["eval/success_high"],
    )


def test_the_moving_average_looks_back_only() -> None:
    values = [0.5, -1.0, 2.0, 8.0, 3.0]
    for window in (1, 2, 3, 10):
        expected = [statistics.fmean(values[:end][-window:]) for end in range(1, 6)]
        assert C.moving_average(values, window) == pytest.approx(expected)
    assert C.moving_average([1.0, 1.0, 9.0], 2)[:2] == [1.0, 1.0]  # the 9 has not happened yet


def test_the_mean_covers_only_turns_that_every_seed_reached() -> None:
    """Beyond the shortest seed the mean would jump, because it would be one over other runs."""
    short, long = points((10, 0.0), (30, 0.2)), points((20, 0.5), (100, 0.5))
    mean = C.mean_curve([short, long])
    assert mean is not None
    assert (mean.turns[0], mean.turns[-1]) == (20, 30)
    assert mean.mean[0] == pytest.approx((0.1 + 0.5) / 2)
    assert mean.mean[-1] == pytest.approx((0.2 + 0.5) / 2)


def test_the_band_is_students_interval_of_the_mean_over_seeds() -> None:
    values = [0.4, 0.5, 0.9]
    mean = C.mean_curve([points((0, v), (1, v)) for v in values])
    assert mean is not None
    half = 4.303 * statistics.stdev(values) / math.sqrt(3)  # the table's quantile for 2 degrees of freedom
    assert mean.low[7] == pytest.approx(max(0.0, 0.6 - half))
    assert mean.high[7] == pytest.approx(min(1.0, 0.6 + half))
    normal = 1.96 * statistics.stdev(values) / math.sqrt(3)
    assert mean.mean[7] - mean.low[7] > 2 * normal  # the normal quantile would claim far too much


def test_the_quantiles_of_students_t_are_those_of_its_density() -> None:
    """Integrates the density of the t distribution up to each table entry: 0.975 must be below it."""
    for freedom in (1, 2, 4, 9, 30):
        log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
        x = np.linspace(0, C._STUDENT[freedom - 1], 100_001)
        density = np.exp(log_scale) * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
        assert 0.5 + np.trapezoid(density, x) == pytest.approx(0.975, abs=2e-5)


def test_one_seed_has_a_mean_but_no_band() -> None:
    mean = C.mean_curve([points((0, 0.1), (10, 0.3))])
    assert mean is not None
    assert mean.mean[-1] == pytest.approx(0.3)
    assert np.isnan(mean.low).all() and np.isnan(mean.high).all()


def test_seeds_without_common_turns_have_no_mean() -> None:
    assert C.mean_curve([points((0, 0.1), (10, 0.3)), points((20, 0.1), (30, 0.3))]) is None
    assert C.mean_curve([[], []]) is None


def test_the_curves_of_methods_have_a_colour_each(tmp_path: Path) -> None:
    named = {
        method: [
            run_folder(tmp_path / f"{method}{seed}", {}, gain=gain + seed / 500, seed=seed).path for seed in range(2)
        ]
        for method, gain in (("ppo", 0.01), ("turn_ppo", 0.02), ("grpo", 0.015))
    }
    target = C.write_curves(named, tmp_path / "deep" / "curves.png", "Three methods")
    picture = pixels(target)
    assert target == tmp_path / "deep" / "curves.png"
    assert [has_colour(picture, colour) for colour in C.COLOURS[:6]] == [True] * 3 + [False] * 3


def test_a_method_without_evaluations_is_named_and_breaks_nothing(tmp_path: Path) -> None:
    """A dollar sign would begin a formula, and a formula without an end is an error of the drawing library."""
    empty = RunFolder.create(tmp_path / "empty", TrainConfig()).path
    full = run_folder(tmp_path / "full", {}).path
    picture = pixels(C.write_curves({"a$b_{": [empty], "grpo": [full]}, tmp_path / "c.png", "costs $5 and $6^"))
    assert has_colour(picture, C.BLUE)  # in the legend
    assert has_colour(picture, C.VERMILION)
    pixels(C.write_curves({"ppo": [empty]}, tmp_path / "d.png", "nothing yet"))


def test_more_methods_than_colours_get_other_dashes() -> None:
    styles = {(C.COLOURS[i % len(C.COLOURS)], C.DASHES[i % len(C.DASHES)]) for i in range(28)}
    assert len(styles) == 28
    pixels(C.curves_picture({f"m{i}": [points((0, i / 20), (9, i / 20))] for i in range(9)}, "nine"))


def test_no_method_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no method to draw: name at least one"):
        C.write_curves({}, tmp_path / "c.png", "none")


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no run in"):
        C.write_curves({"ppo": [tmp_path]}, tmp_path / "c.png", "none")
    assert not (tmp_path / "c.png").exists()


def test_drawing_leaves_the_global_state_of_matplotlib_alone(tmp_path: Path) -> None:
    """A figure that pyplot manages would stay in memory for every report of a long run."""
    import matplotlib

    before = dict(matplotlib.rcParams)
    C.write_curve(run_folder(tmp_path / "run", OUTCOMES))
    assert dict(matplotlib.rcParams) == before
    import sys

    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
