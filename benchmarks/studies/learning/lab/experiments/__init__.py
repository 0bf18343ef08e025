"""The experiments of the laboratory, one file each."""

from __future__ import annotations

from collections.abc import Mapping

from lab.experiment import Experiment
from lab.experiments import a_state_groups

EXPERIMENTS: Mapping[str, Experiment] = {each.name: each for each in (a_state_groups.EXPERIMENT,)}
"""Letter of the claim -> experiment."""
