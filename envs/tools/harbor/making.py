"""The choice of a box: Bubblewrap where a task's Dockerfile allows it, else Docker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from turngym.envs.tools.harbor.box import Box
from turngym.envs.tools.harbor.bubblewrap_box import BubblewrapBox, require_boxes
from turngym.envs.tools.harbor.docker_box import DockerBox
from turngym.envs.tools.harbor.docker_images import client, image_of
from turngym.envs.tools.harbor.dockerfile import NeedsDocker, Recipe, read_recipe
from turngym.envs.tools.harbor.settings import BoxSettings
from turngym.envs.tools.harbor.tasks import Task
from turngym.errors import ConfigError, MissingExtra

_ROOT = ("", "root", "0")
_MOST_SHOWN = 5


class BoxMaker:
    """Makes the boxes of tasks.

    Args:
        backend: ``"auto"``, ``"bubblewrap"`` or ``"docker"``.
        runtime: Runtime of Docker.
        network: Whether boxes of tasks that ask for a network have one.
    """

    def __init__(self, backend: str, runtime: str, network: bool) -> None:
        self._backend, self._runtime, self._network = backend, runtime, network

    def require(self, task: Task) -> None:
        """Raise unless the boxes of a task can be made here.

        Raises:
            ConfigError: The task needs more than turngym has.
            MissingExtra: It needs Docker or Bubblewrap, which is missing.
        """
        settings = task.settings
        boxes = [(task.folder / "environment", settings.box)]
        boxes += [(task.verifier_folder(step)[0], step.verifier.box) for step in settings.steps if step.verifier.box]
        for folder, box in boxes:
            if box.problem:
                raise ConfigError(f"the task {task.name} cannot be played: {box.problem}.")
            if self._recipe(task, folder, box) is None:
                self._require_docker()
            else:
                require_boxes()

    def make(self, task: Task, folder: Path, settings: BoxSettings, env: Mapping[str, str]) -> Box:
        """Return a new box.

        Args:
            task: The task.
            folder: Folder with the Dockerfile.
            settings: Settings of the box.
            env: Its variables.
        """
        recipe = self._recipe(task, folder, settings)
        if recipe is None:
            return DockerBox(
                image_of(folder, settings), settings, env, self._runtime, self._network and settings.network
            )
        return BubblewrapBox(recipe, settings, env)

    def _recipe(self, task: Task, folder: Path, settings: BoxSettings) -> Recipe | None:
        """Return the content of a box for Bubblewrap, None for Docker.

        Raises:
            MissingExtra: It needs Docker, and bubblewrap was asked for.
        """
        if self._backend == "docker":
            return None
        try:
            users = {step.user for step in task.settings.steps} | {step.verifier.user for step in task.settings.steps}
            if others := users - {*_ROOT}:
                raise NeedsDocker(f"it runs commands as the user {min(others)[:40]}")
            if settings.image and not (folder / "Dockerfile").exists():
                raise NeedsDocker(f"it has the image {settings.image[:60]}")
            return read_recipe(folder)
        except NeedsDocker as error:
            if self._backend == "auto":
                self._require_docker(f"the task {task.name} needs Docker, because {error}")
                return None
            raise MissingExtra(f"the task {task.name} needs Docker, because {error}: pass sandbox=docker.") from error

    def _require_docker(self, reason: str = "sandbox=docker was asked for") -> None:
        try:
            client()
        except MissingExtra as error:
            raise MissingExtra(f"{reason}: {error}") from error


def unplayable(reasons: Sequence[str]) -> str:
    """Return reasons as part of a sentence, a few of them.

    >>> unplayable(["a (x)", "b (y)"])
    'a (x); b (y)'
    """
    more = f"; and {len(reasons) - _MOST_SHOWN} more" if len(reasons) > _MOST_SHOWN else ""
    return "; ".join(each.rstrip(".") for each in reasons[:_MOST_SHOWN]) + more
