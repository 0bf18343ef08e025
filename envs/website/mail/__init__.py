"""A mailbox."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.website.mail.site import (
        SITE,
        forwarded,
        way,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.website.mail.site": (
                "SITE",
                "forwarded",
                "way",
            )
        },
    )

__all__ = ["SITE", "forwarded", "way"]
