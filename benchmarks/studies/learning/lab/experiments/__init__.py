"""The experiments of the laboratory, one file each."""

from __future__ import annotations

from collections.abc import Mapping

from lab.experiment import Experiment
from lab.experiments import (
    a_state_groups,
    b_turn_level,
    c_reuse,
    d_entropy,
    e_returns,
    f_dense,
    g_critics,
    h_rare_success,
    j_penalties,
)

_FILES = (
    a_state_groups,
    b_turn_level,
    c_reuse,
    d_entropy,
    e_returns,
    f_dense,
    g_critics,
    h_rare_success,
    j_penalties,
)

EXPERIMENTS: Mapping[str, Experiment] = {each.EXPERIMENT.name: each.EXPERIMENT for each in _FILES}
"""Letter of the claim -> experiment."""
