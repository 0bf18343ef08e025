"""Tasks from a file of one's own, each with one answer, and judges that compare it.

``turngym train --agent.tasks FILE --agent.judge numeric`` trains on them, with the built-in agent or with an agent
program; ``turngym.envs.task_file:TaskFile`` is the environment.
"""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.task_file.env import TaskFile
    from turngym.envs.task_file.judges import Grade
    from turngym.envs.task_file.reading import FileTask, read_tasks
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.task_file.env": ("TaskFile",),
            "turngym.envs.task_file.judges": ("Grade",),
            "turngym.envs.task_file.reading": ("FileTask", "read_tasks"),
        },
    )

__all__ = ["FileTask", "Grade", "TaskFile", "read_tasks"]
