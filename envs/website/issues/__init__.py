"""A tracker of issues."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.website.issues.site import (
        SITE,
        way,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.website.issues.site": (
                "SITE",
                "way",
            )
        },
    )

__all__ = ["SITE", "way"]
