"""The limit on open files, which bounds the connections of a server."""

from __future__ import annotations

import resource

SPARE_FILES = 256
"""Files that a server opens besides its connections."""


def allowed_connections(wanted: int) -> int:
    """Return how many connections the limit on open files allows, after raising it as far as the system lets us.

    Args:
        wanted: Connections that are wanted; the limit is raised no further than they need.

    >>> allowed_connections(4) >= 4
    True
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    reachable = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    except (ValueError, OSError):  # the system's own limit is lower
        reachable = soft
    return max(1, reachable - SPARE_FILES)
