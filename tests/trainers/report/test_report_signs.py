"""The report says what to look at where little could be learnt."""

from pathlib import Path

import pytest
from report_pages import written
from synthetic_runs import metrics_record, run_folder

from turngym.trainers.report.attention import LAST, SIGNS, Sign, look_at


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: sign.metric)
def test_each_sign_is_told_with_what_to_look_at(sign: Sign) -> None:
    (told,) = look_at([{sign.metric: 1.0, "rollout/episodes": 0.0}])
    assert (told.startswith("100.0 % of the ") and " Look at: " in told and "--" in told) or "`turngym check`" in told


def test_a_run_without_signs_has_nothing_to_look_at() -> None:
    assert look_at([]) == [] and look_at([metrics_record(number) for number in range(20)]) == []
    assert look_at([{"rollout/invalid_actions": 0.1, "rollout/faults": 1.0, "rollout/episodes": 255.0}]) == []


def test_only_the_last_iterations_count() -> None:
    early = [{"rollout/invalid_actions": 1.0}] * 5
    assert look_at([*early, *[{"rollout/invalid_actions": 0.0}] * LAST]) == []
    assert "last 10 iterations" in look_at([*[{"rollout/invalid_actions": 0.0}] * 5, *early, *early])[0]


def test_the_page_shows_them(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {"warmup-sampled": [0] * 8, "final-sampled": [0] * 8})
    assert "What to look at" not in written(folder)[0]
    for number in range(LAST):
        folder.append_metrics({**metrics_record(20 + number), "rollout/invalid_actions": 1.0})
    text = written(folder)[0]
    assert "What to look at" in text and "100.0 % of the actions were invalid in the last 10 iterations." in text
