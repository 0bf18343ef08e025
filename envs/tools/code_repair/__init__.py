"""Repair of short Python programs whose tests fail."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tools.code_repair.env import (
        CodeRepair,
        blank_task,
        faulty_task,
        program_in,
        written,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.tools.code_repair.env": (
                "CodeRepair",
                "blank_task",
                "faulty_task",
                "program_in",
                "written",
            )
        },
    )

__all__ = ["CodeRepair", "blank_task", "faulty_task", "program_in", "written"]
