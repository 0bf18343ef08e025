"""Running generated packages here, to find out what is expected and what a fault breaks.

Only sources that this package has written run here, never what an agent wrote. Rounds of ``while`` are counted, so
that a fault cannot keep them from ending.
"""

from __future__ import annotations

import builtins
import re
import types
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

_MOST = 20_000
_TICK, _FOUND = "_tick", "_found"
_LOOP = re.compile(r"^( *)while .*:$", re.MULTILINE)
VALUE, RAISED, ENDLESS = "value", "raised", "endless"
Result = tuple[str, Any]
"""``(VALUE, value)``, ``(RAISED, name of the exception's type)`` or ``(ENDLESS, "")``."""


class _Endless(BaseException):
    """Too many steps."""


@lru_cache(maxsize=256)
def _compiled(source: str) -> types.CodeType:
    return compile(_LOOP.sub(rf"\g<0>\n\1    {_TICK}()", source), "<part>", "exec")


@lru_cache(maxsize=1024)
def _case(text: str) -> types.CodeType:
    before, newline, last = text.rpartition("\n")
    return compile(f"{before}{newline}{_FOUND} = ({last})", "<case>", "exec")


class Trial:
    """A package in memory, under no name that others could import.

    Args:
        files: Name of the module, such as ``"money"`` or ``"vendor.numkit"`` -> source.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files, self._modules = files, dict[str, types.ModuleType]()
        self._steps, self._space = 0, dict[str, types.ModuleType]()
        self._builtins = {**vars(builtins), "__import__": self._import, _TICK: self._tick}

    def run(self, cases: Sequence[str]) -> list[Result]:
        """Return what came of each case."""
        return [self._run(case) for case in cases]

    def _run(self, text: str) -> Result:
        self._steps = 0
        code = _case(text)
        try:
            self._space = self._space or {name: self._module(name) for name in self._files if "." not in name}
            space: dict[str, Any] = dict(self._space)
            exec(code, space)
            return VALUE, space[_FOUND]
        except _Endless:
            return ENDLESS, ""
        except Exception as error:  # a fault of the package, which is what a case is about
            return RAISED, type(error).__name__

    def _tick(self) -> None:
        self._steps += 1
        if self._steps > _MOST:
            raise _Endless

    def _module(self, name: str) -> types.ModuleType:
        if name not in self._modules:
            module = types.ModuleType(name)
            vars(module)["__builtins__"] = self._builtins
            exec(_compiled(self._files[name]), vars(module))
            self._modules[name] = module
        return self._modules[name]

    def _import(
        self, name: str, space: Any = None, local: Any = None, wanted: Sequence[str] = (), level: int = 0
    ) -> Any:
        if level == 0:
            return __import__(name, space, local, wanted, level)
        prefix = f"{name}." if name else ""
        return types.SimpleNamespace(**{each: self._module(f"{prefix}{each}") for each in wanted})
