"""Signatures of classes, the same on every supported Python."""

import inspect


def constructor_signature(kind: type) -> inspect.Signature:
    """Return the signature of a class's ``__init__``, without ``self``, or of its declared options.

    On Python 3.11.0 to 3.11.4, ``inspect.signature`` prefers a ``__new__`` that a class inherits to an ``__init__``
    that it inherits as well.

    >>> class Door:
    ...     def __init__(self, width: int = 1) -> None: ...
    >>> str(constructor_signature(Door))
    '(width: int = 1)'
    """
    declared = getattr(kind, "__signature__", None)
    if isinstance(declared, inspect.Signature):
        return declared
    found = inspect.signature(kind.__init__)  # type: ignore[misc]  # it is that of this class
    return found.replace(parameters=list(found.parameters.values())[1:], return_annotation=inspect.Signature.empty)
