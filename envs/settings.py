"""Options of objects: recorded as given, and checked when they come from untrusted files.

Submissions, recordings and tournaments name environments, games and wrappers with options, which are recreated to
replay episodes. Only classes that set ``file_options`` can be created from a file.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from turngym.errors import ConfigError, nearest
from turngym.options import Kind, constructor_signature, kinds
from turngym.options import Options as BaseOptions

_NOT_SETTINGS = ("env_id", "render_mode")
_WORDS = re.compile(r"[A-Za-z0-9_ -]{0,80}")
_LARGEST, _MOST_ITEMS, _SHOWN = 1e9, 100, 60
_SCALARS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "None": (type(None),),
}


def worded(*options: str, **patterns: str) -> Mapping[str, re.Pattern[str]]:
    """Return a value for ``file_options``: options whose text values can name no module, file or host.

    Args:
        *options: Options with plain words as values, which the constructor checks against its closed set.
        **patterns: Option -> regular expression of its values, if plain words do not suffice.

    >>> found = worded("view", operators="[-+]{1,2}")
    >>> bool(found["view"].fullmatch("grid")), bool(found["view"].fullmatch("os.path:join"))
    (True, False)
    """
    return {**dict.fromkeys(options, _WORDS), **{name: re.compile(text) for name, text in patterns.items()}}


class Declared:
    """Base of classes that files can name; rejected until it declares its options."""

    __slots__ = ()

    file_options: ClassVar[Mapping[str, re.Pattern[str]] | None] = None
    """Option -> the texts, also in lists, that a file may give it. Numbers and truth values are allowed wherever the
    signature has them, and every option may have its default. None: no file may ask for this at all.
    """

    @classmethod
    def refusal(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return why an untrusted file may not request these options; empty if it may.

        Args:
            options: Options requested by the file.
            defaults: Defaults that differ from those of the signature.

        >>> class Door(Declared):
        ...     file_options = worded("colour")
        ...     def __init__(self, width: int = 1, colour: str = "green", hinge: str = "oak") -> None: ...
        >>> Door.refusal({"width": 2, "colour": "red", "hinge": "oak"}), Declared.refusal({})
        ('', 'Declared is not declared safe for files of others to ask for')
        >>> Door.refusal({"hinge": "os:path"})
        "the option hinge='os:path' is not one that a file may ask for"
        """
        if cls.file_options is None:
            return f"{cls.__name__} is not declared safe for files of others to ask for"
        parameters, declared = constructor_signature(cls).parameters, cls.declared_kinds()
        for name, value in options.items():
            known = parameters.get(name)
            if known is None or known.kind in (known.VAR_KEYWORD, known.VAR_POSITIONAL):
                return f"it has no option {name[:_SHOWN]!r}"
            default, allowed = (defaults or {}).get(name, known.default), cls.file_options.get(name)
            kind = declared.get(name)
            is_safe = _fits(value, str(known.annotation), allowed) if kind is None else _is_safe(value, kind, allowed)
            if not (_same(value, default) or is_safe):
                return f"the option {name}={str(value)[:_SHOWN]!r} is not one that a file may ask for"
        return ""

    @classmethod
    def declared_kinds(cls) -> Mapping[str, Kind]:
        """Return the kind of each option, if the options are declared."""
        return {}

    @classmethod
    def misfit(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return why no object can have these options; empty if one can, even if no file may ask for it.

        >>> class Door(Declared):
        ...     file_options = worded("colour")
        ...     def __init__(self, width: int = 1, colour: str = "green", hinge: str = "oak") -> None: ...
        >>> Door.misfit({"width": 2, "hinge": "os:path"}), Door.misfit({"wings": 2})
        ('', "it has no option 'wings'")
        >>> Door.misfit({"width": "wide"})
        "the option width='wide' is none that Door takes"
        """
        parameters, declared = constructor_signature(cls).parameters, cls.declared_kinds()
        is_open = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        for name, value in options.items():
            known = parameters.get(name)
            if known is None:
                if not is_open:
                    return f"it has no option {name[:_SHOWN]!r}"
                continue
            allowed, kind = (cls.file_options or {}).get(name), declared.get(name)
            if _same(value, (defaults or {}).get(name, known.default)):
                continue
            if _misfit(value, str(known.annotation), allowed) if kind is None else not _can_be(value, kind, allowed):
                return f"the option {name}={str(value)[:_SHOWN]!r} is none that {cls.__name__} takes"
        return ""


def _is_safe(value: Any, kind: Kind, allowed: re.Pattern[str] | None) -> bool:
    """Return whether a file may give a declared option a value."""
    items = value if isinstance(value, list) else [value]
    return kind.accepts(value) and len(items) <= _MOST_ITEMS and all(_is_plain(each, kind, allowed) for each in items)


def _is_plain(value: Any, kind: Kind, allowed: re.Pattern[str] | None) -> bool:
    if isinstance(value, str):
        return not kind.is_free or (allowed is not None and allowed.fullmatch(value) is not None)
    return value is None or (isinstance(value, int | float) and _is_usual(value))


def _can_be(value: Any, kind: Kind, allowed: re.Pattern[str] | None) -> bool:
    """Return whether a declared option can have a value anywhere."""
    if isinstance(value, str) and kind.is_free and allowed is not None:
        return allowed.fullmatch(value) is not None
    return kind.accepts(value)


def _misfit(value: Any, annotation: str, allowed: re.Pattern[str] | None) -> bool:
    """Return whether a value is none that an option can have, as far as its annotation and its texts tell."""
    kinds = {each.strip() for each in annotation.split("|")}
    if isinstance(value, str) and "str" in kinds:
        return allowed is not None and allowed.fullmatch(value) is None
    return kinds <= {*_SCALARS, "str"} and not _fits(value, annotation, None)


def _fits(value: Any, annotation: str, allowed: re.Pattern[str] | None) -> bool:
    if isinstance(value, list):
        item = annotation.partition("Sequence[")[2].partition("]")[0]
        return bool(item) and len(value) <= _MOST_ITEMS and all(_fits(each, item, allowed) for each in value)
    if isinstance(value, str):
        return allowed is not None and allowed.fullmatch(value) is not None
    kinds = [kind for each in annotation.split("|") for kind in _SCALARS.get(each.strip(), ())]
    return type(value) in kinds and (not isinstance(value, int | float) or _is_usual(value))


def _is_usual(value: float) -> bool:
    return abs(value) <= _LARGEST and math.isfinite(value)


def _same(value: Any, default: Any) -> bool:
    """Return whether a value from a file is a default, as JSON would hold it."""
    if default is inspect.Parameter.empty:
        return False
    try:
        return json.dumps(value, sort_keys=True) == json.dumps(default, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False


class _Signature:
    """Signature of a class whose constructor takes its declared options."""

    def __get__(self, instance: Any, owner: type[Configured]) -> inspect.Signature:
        if not owner.takes_declared():
            raise AttributeError("__signature__")  # then Python reads the class's own constructor
        found: inspect.Signature | None = owner.__dict__.get("_signature")
        if found is None:
            taken = inspect.signature(owner.__init__).parameters.values()
            others = [each for each in taken if each.kind is each.KEYWORD_ONLY]
            owner._signature = found = inspect.Signature([*owner.Options.parameters(), *others])
        return found


class Configured(Declared):
    """Made from options, which it records: declared ones, or those of a constructor that the class defines itself.

    A class with ``Options`` gets a constructor that takes them, checks them, and calls :meth:`setup`. A subclass may
    define its own constructor instead, which passes the options of its base on.

    >>> class Door(Configured):
    ...     def __init__(self, width: int, colour: str = "green") -> None: ...
    >>> Door(3).settings
    {'width': 3, 'colour': 'green'}
    """

    Options: ClassVar[type[BaseOptions]] = BaseOptions
    """The options, declared as the fields of a class."""
    __signature__ = _Signature()
    _signature: ClassVar[inspect.Signature]
    _constructor: ClassVar[Callable[..., None] | None] = None
    """The constructor that takes the declared options, and its other keywords."""
    options: BaseOptions
    settings: Mapping[str, Any]
    """The options that this object was made with, defaults included."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "Options" not in cls.__dict__:
            return
        base = next(each.__dict__["Options"] for each in cls.__mro__[1:] if "Options" in each.__dict__)
        if not (isinstance(cls.Options, type) and issubclass(cls.Options, base)):
            raise ConfigError(f"{cls.__qualname__}.Options must derive from {base.__qualname__}, whose options it has.")
        if taken := [name for name in _NOT_SETTINGS if name in inspect.get_annotations(cls.Options)]:
            raise ConfigError(f"{cls.__qualname__}.Options declares {taken[0]}, which every constructor takes already.")

    @classmethod
    def takes_declared(cls) -> bool:
        """Return whether the constructor takes the declared options, and is not one that a subclass defines itself."""
        return cls.__init__ is cls._constructor

    @classmethod
    def declared_kinds(cls) -> Mapping[str, Kind]:
        """Return the kind of each option, if the options are declared."""
        return kinds(cls.Options) if cls.takes_declared() else {}

    def take_options(self, owner: str, given: Mapping[str, Any], positional: Sequence[Any] = ()) -> None:
        """Check and keep the declared options; for constructors."""
        self.options = self.Options.build(owner, given, positional)
        if self.takes_declared():
            self.settings = self.recorded(dict(vars(self.options)))

    def setup(self) -> None:
        """Prepare what follows from ``self.options``, which have been checked; called once, by the constructor."""

    @classmethod
    def recorded(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options as snapshots, results and ruleset hashes record them."""
        return options

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Record the options of a constructor that a subclass defines itself."""
        self = super().__new__(cls)
        if cls.__init__ is not cls._constructor:
            self.settings = cls.recorded(_bound(cls, args, kwargs))
        return self


def _bound(cls: type[Configured], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    signature = constructor_signature(cls)
    open_ended = [name for name, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD]
    for key in kwargs:
        if key not in signature.parameters and not open_ended:
            known = set(signature.parameters) - {"env_id"}
            raise ConfigError(f"{cls.__name__} has no option {key!r}. {nearest(key, known)}")
    bound = signature.bind_partial(*args, **kwargs)
    bound.apply_defaults()
    settings = {**bound.arguments, **(bound.arguments.get(open_ended[0], {}) if open_ended else {})}
    return {k: v for k, v in settings.items() if k not in (*_NOT_SETTINGS, *open_ended)}
