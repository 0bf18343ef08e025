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
    i_search_steps,
    j_penalties,
    k_imitation,
    l_time_limits,
)

_ALL = (
    a_state_groups.EXPERIMENT,
    a_state_groups.HISTORY,
    b_turn_level.EXPERIMENT,
    c_reuse.EXPERIMENT,
    d_entropy.EXPERIMENT,
    e_returns.EXPERIMENT,
    f_dense.EXPERIMENT,
    g_critics.EXPERIMENT,
    g_critics.EQUAL_TURNS,
    h_rare_success.EXPERIMENT,
    i_search_steps.EXPERIMENT,
    j_penalties.EXPERIMENT,
    k_imitation.EXPERIMENT,
    l_time_limits.EXPERIMENT,
)

EXPERIMENTS: Mapping[str, Experiment] = {each.name: each for each in _ALL}
"""Letter of the claim -> experiment."""
