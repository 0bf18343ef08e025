"""The sites by name, their worlds, and the goals asked for there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from turngym.envs.website.draw import Draw, Maker, NoGoal
from turngym.envs.website.goal import Goal
from turngym.envs.website.issues import goals as issues_goals
from turngym.envs.website.issues import site as issues
from turngym.envs.website.mail import goals as mail_goals
from turngym.envs.website.mail import site as mail
from turngym.envs.website.shop import goals as shop_goals
from turngym.envs.website.shop import site as shop
from turngym.envs.website.site import Site
from turngym.envs.website.store import World, make_world
from turngym.seeding import stream

SITES: dict[str, Site] = {"issues": issues.SITE, "mail": mail.SITE, "shop": shop.SITE}
"""Name -> site."""
KINDS: dict[str, Mapping[str, Maker]] = {
    "issues": issues_goals.KINDS,
    "mail": mail_goals.KINDS,
    "shop": shop_goals.KINDS,
}
"""Name of a site -> its kinds of goals."""


class Instance(NamedTuple):
    """Subject of one episode.

    Args:
        site: Name of the site.
        world: Number of its content.
        kind: Kind of goal.
        number: Which goal of the kind.
    """

    site: str
    world: int
    kind: str
    number: int


@lru_cache(maxsize=512)
def world_of(site: str, number: int) -> World:
    """Return the content with a number; the latest ones are kept."""
    made = SITES[site]
    return make_world(f"{site} {number}", made.schema, made.build(stream("website", site, number)))


@lru_cache(maxsize=256)
def goal_of(instance: Instance) -> Goal | None:
    """Return the goal of an instance, None where its world has none of the kind and number."""
    site, world, kind, number = instance
    generator = stream("website goal", site, world, kind, number)
    try:
        return KINDS[site][kind](Draw(world_of(site, world), SITES[site].schema, generator))
    except NoGoal:
        return None
