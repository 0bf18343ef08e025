"""Key-value caches kept from turn to turn."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.agents.models.kv_cache.requests import CacheCounts
    from turngym.agents.models.kv_cache.sessions import Sessions
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.agents.models.kv_cache.requests": ("CacheCounts",),
            "turngym.agents.models.kv_cache.sessions": ("Sessions",),
        },
    )

__all__ = ["CacheCounts", "Sessions"]
