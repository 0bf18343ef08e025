"""torch, imported on first use, which keeps modules with settings and names fast to import.

``from turngym.lazy import torch`` replaces ``import torch`` in modules imported by ``turngym list`` and ``turngym train
--help``. Type checkers see the real module. Modules whose base classes or decorators need torch at import time import
it as usual, and are themselves imported inside functions.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

ParametersT = ParamSpec("ParametersT")
ResultT = TypeVar("ResultT")

__all__ = ["Tensor", "nn", "no_grad", "require", "torch"]


def require(package: str) -> None:
    """Check that a package is installed, without importing it.

    Raises:
        ModuleNotFoundError: It is missing.
    """
    if importlib.util.find_spec(package) is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)


require("torch")  # a module that needs torch and cannot have it must be told apart from one that waits for its use

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:

    class _Lazy:
        """Stands for a module, or for a class of one, until something is asked of it."""

        __slots__ = ("_attribute", "_module")

        def __init__(self, module: str, attribute: str = "") -> None:
            self._module, self._attribute = module, attribute

        def _loaded(self) -> Any:
            module = importlib.import_module(self._module)
            return getattr(module, self._attribute) if self._attribute else module

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") and name.endswith("__"):
                raise AttributeError(name)  # what inspects modules and annotations does not import torch
            return getattr(self._loaded(), name)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self._loaded()(*args, **kwargs)

        def __instancecheck__(self, instance: Any) -> bool:
            return isinstance(instance, self._loaded())

    torch, nn, Tensor = _Lazy("torch"), _Lazy("torch.nn"), _Lazy("torch", "Tensor")


def no_grad(function: Callable[ParametersT, ResultT]) -> Callable[ParametersT, ResultT]:
    """Decorate a function like ``torch.no_grad()``, importing torch only when it is called."""

    @functools.wraps(function)
    def call(*args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ResultT:
        with torch.no_grad():
            return function(*args, **kwargs)

    return call
