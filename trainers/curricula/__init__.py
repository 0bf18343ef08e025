"""Curricula by name: the choice of the tasks of an iteration by the results of earlier ones; one file each.

A specification is written as those of wrappers are: ``pcl:tasks=128``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turngym.errors import ConfigError
from turngym.loading import Wanted, load_object, split_place
from turngym.registry import Registry
from turngym.wrappers.wrapping import Wrapping

if TYPE_CHECKING:
    from turngym.trainers.curricula.base.curriculum import Curriculum

CURRICULA: Registry[type[Curriculum[Any]]] = Registry("curriculum", "turngym.trainers.curricula")


def make_curriculum(specification: str) -> Curriculum[Any]:
    """Return the curriculum that ``name`` or ``name:option=value,option=value`` describes.

    Args:
        specification: The name is a registered one, ``"module:Class"``, or ``"path/to/file.py:Class"``.

    Raises:
        UnknownName: There is no such curriculum, module, file, or class in it.
        ConfigError: It is not a curriculum, or an option is wrong.

    >>> make_curriculum("pcl:tasks=128").config.tasks
    128
    """
    read = Wrapping.read(specification, "curriculum")
    kind = _curriculum_class(read.name)
    return kind(kind.Config.build(f"the curriculum {read.name}", read.options))


def _curriculum_class(name: str) -> type[Curriculum[Any]]:
    place, last = split_place(name)
    if not place:
        return CURRICULA[name]
    if place in CURRICULA:
        raise ConfigError(f"the curriculum {place} has no value for {last!r}: write {place}:{last}=VALUE.")
    from turngym.trainers.curricula.base.curriculum import Curriculum

    form = "a class of turngym.trainers.curricula.base.curriculum.Curriculum"
    wanted = Wanted("a curriculum", form, lambda found: isinstance(found, type) and issubclass(found, Curriculum))
    found: type[Curriculum[Any]] = load_object(name, wanted, CURRICULA)
    return found
