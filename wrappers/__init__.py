"""Wrappers that change one thing about an environment, and the formats that action texts are written in."""

from turngym.registry import Registry

WRAPPERS: Registry[type] = Registry("wrapper", "turngym.wrappers")
