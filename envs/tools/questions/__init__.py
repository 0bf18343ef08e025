"""Questions from a file or a data set, each with its answers, and rewards that compare answers."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tools.questions.env import Questions
    from turngym.envs.tools.questions.judges import Grade
    from turngym.envs.tools.questions.reading import FileTask, read_tasks
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.tools.questions.env": ("Questions",),
            "turngym.envs.tools.questions.judges": ("Grade",),
            "turngym.envs.tools.questions.reading": ("FileTask", "read_tasks"),
        },
    )

__all__ = ["FileTask", "Grade", "Questions", "read_tasks"]
