"""Options declared once, as the fields of a class, from which checks, signature, JSON, help and docs table follow.

>>> class Door(Options):
...     width: Annotated[int, between(1, 9)] = 2
...     '''Width in metres.'''
...     colour: Literal["green", "red"] = "green"
>>> Door(width=3)
Door(width=3, colour='green')
>>> Door.build("the door", {"widht": 3})
Traceback (most recent call last):
turngym.options.UnknownOption: the door has no option 'widht'. Did you mean 'width'?
>>> Door.build("the door", {"width": 0})
Traceback (most recent call last):
turngym.options.OptionError: width of the door must be a whole number in [1, 9], got 0.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from turngym.errors import ConfigError, nearest

_WRONG: Any = object()
_LONGEST_SHOWN = 200
_LARGEST = 2**63 - 1
"""Largest whole number, as arrays and sizes have it."""


class Rule(NamedTuple):
    """Restriction of a value, written as an argument of ``Annotated``.

    Args:
        words: Requirement on a value, after "must be a number".
        holds: Returns whether a value is valid.
        choices: All valid values, if few.
    """

    words: str
    holds: Callable[[Any], bool]
    choices: tuple[Any, ...] = ()


def between(low: float, high: float) -> Rule:
    """Restrict to numbers from ``low`` to ``high``, inclusive."""
    return Rule(f"in [{_bound(low)}, {_bound(high)}]", lambda value: low <= value <= high)


def at_least(low: float) -> Rule:
    """Restrict to numbers of at least ``low``."""
    return Rule(f"of at least {_bound(low)}", lambda value: value >= low)


def at_most(high: float) -> Rule:
    """Restrict to numbers of at most ``high``."""
    return Rule(f"up to {_bound(high)}", lambda value: value <= high)


def above(low: float) -> Rule:
    """Restrict to numbers greater than ``low``."""
    return Rule(f"above {_bound(low)}", lambda value: value > low)


def below(high: float) -> Rule:
    """Restrict to numbers less than ``high``."""
    return Rule(f"below {_bound(high)}", lambda value: value < high)


def _bound(value: float) -> str:
    """Return a bound as it is read most easily.

    >>> _bound(9), _bound(0.5), _bound(1_000_000), _bound(-1e6), _bound(1_000_000.5)
    ('9', '0.5', '1000000', '-1e6', '1000000.5')
    """
    is_long = isinstance(value, float) and abs(value) >= 1e5 and value % 1e5 == 0
    return f"{value:g}".replace("e+0", "e").replace("e+", "e") if is_long else str(value)


def one_of(*texts: str) -> Rule:
    """Restrict to computed strings; if they can be written out, use ``Literal``."""
    return Rule(f"one of {', '.join(map(repr, texts))}", lambda value: value in texts, texts)


Natural: TypeAlias = Annotated[int, at_least(0)]
Positive: TypeAlias = Annotated[int, at_least(1)]
Amount: TypeAlias = Annotated[float, at_least(0)]
Share: TypeAlias = Annotated[float, between(0, 1)]
Seconds: TypeAlias = Annotated[float, above(0), below(1_000_000)]
Rate: TypeAlias = Annotated[float, above(0), below(1)]


class OptionError(ConfigError):
    """An option is out of its range, or contradicts another one.

    Args:
        option: Its name.
        problem: The rest of the sentence, such as ``"must be even, got 3."``
        owner: Owner of the option.
    """

    _sentence = "{option}{of} {problem}"

    def __init__(self, option: str, problem: str, owner: str = "") -> None:
        of = f" of {owner}" if owner else ""
        super().__init__(self._sentence.format(option=option, problem=problem, of=of, owner=owner or "this"))
        self.option, self.problem, self.owner = option, problem, owner

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str]]:
        """Make the error picklable."""
        return type(self), (self.option, self.problem, self.owner)


class UnknownOption(OptionError):
    """There is no option of this name."""

    _sentence = "{owner} has no option {option!r}. {problem}"


class Kind(NamedTuple):
    """Requirement on a value.

    Args:
        noun: The type in words.
        read: Returns the value, converted where JSON lacks the type, or ``_WRONG``; it checks the rules as well.
        rules: Further restrictions, for the message.
        is_free: Whether any text is allowed, which untrusted files may not choose.
        default: A value known to be valid and not checked again.
    """

    noun: str
    read: Callable[[Any], Any]
    rules: tuple[Rule, ...] = ()
    is_free: bool = False
    default: Any = _WRONG

    @property
    def choices(self) -> tuple[Any, ...]:
        """All allowed values if few, else empty."""
        return next((rule.choices for rule in self.rules if rule.choices), ())

    @property
    def words(self) -> str:
        """Requirement on a value: ``"a whole number in [1, 9]"``."""
        rules = " and ".join(rule.words for rule in self.rules)
        return rules if self.choices else f"{self.noun} {rules}".rstrip()

    def accepts(self, value: Any) -> bool:
        """Return whether a value is valid for this kind."""
        return self.read(value) is not _WRONG


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """Base of option classes: a subclass becomes a frozen dataclass whose values are checked when it is made.

    Fields are passed by name. A string below a field describes it in help and docs; a type with rules, such as
    ``Annotated[int, between(1, 9)]``, restricts it. Restrictions that involve several fields belong in ``check``.
    """

    _kinds: ClassVar[Mapping[str, Kind]]
    _required: ClassVar[frozenset[str]]
    if TYPE_CHECKING:  # for the functions of the module dataclasses
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        for name, kind in kinds(type(self)).items():
            value = getattr(self, name)
            if value is kind.default:
                continue
            try:
                found = kind.read(value)
            except OptionError as error:  # of options inside of these
                raise type(error)(f"{name}.{error.option}", error.problem) from None
            if found is _WRONG:
                raise _error(name, kind, value)
            if found is not value:
                object.__setattr__(self, name, found)
        self.check()

    def check(self) -> None:
        """Raise an :class:`OptionError` if options contradict each other."""

    def require(self, name: str, rule: Rule, value: Any = None) -> None:
        """Raise unless an option, or a value derived from it, is valid."""
        value = getattr(self, name) if value is None else value
        if not rule.holds(value):
            kind = kinds(type(self))[name]
            raise _error(name, Kind(kind.noun.removesuffix(" or None"), kind.read, (rule,)), value)

    @classmethod
    def build(cls, owner: str, given: Mapping[str, Any], positional: Sequence[Any] = ()) -> Self:
        """Return the options, with the name of their owner in every error.

        Args:
            owner: Owner of the options.
            given: Options by name.
            positional: Values of the first fields that the class itself declares.

        Raises:
            OptionError: An option is missing, unknown or out of its range, or contradicts another one.
        """
        known = kinds(cls)
        if not isinstance(given, Mapping):
            raise ConfigError(f"{owner or 'this'} must be a table of options, got {_shown(given)}.")
        if positional:
            given = {**given, **cls._named(owner, given, positional)}
        try:
            if not known.keys() >= given.keys():
                wrong = str(next(name for name in given if name not in known))
                raise UnknownOption(wrong, nearest(wrong, known))
            if missing := cls._required.difference(given):
                raise OptionError(min(missing), "is required.")
            return cls(**given)
        except OptionError as error:
            raise type(error)(error.option, error.problem, owner) from None

    @classmethod
    def _named(cls, owner: str, given: Mapping[str, Any], positional: Sequence[Any]) -> dict[str, Any]:
        names = _own(cls)[: len(positional)]
        if len(names) < len(positional):
            raise ConfigError(f"{owner} got {len(positional)} options by position and takes {len(names)}: pass names.")
        if twice := next((name for name in names if name in given), ""):
            raise ConfigError(f"{owner} got the option {twice} twice: by position and by name.")
        return dict(zip(names, positional, strict=True))

    @classmethod
    def parameters(cls) -> list[inspect.Parameter]:
        """Return the options as parameters of a signature, the class's own first."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        own, found = _own(cls), list[inspect.Parameter]()
        kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
        for name in dict.fromkeys([*own, *fields]):
            default, is_first = _default_of(fields[name]), not found
            default = inspect.Parameter.empty if default is dataclasses.MISSING else default
            if name not in own or (default is inspect.Parameter.empty and not is_first):
                kind = inspect.Parameter.KEYWORD_ONLY
            found.append(inspect.Parameter(name, kind, default=default, annotation=fields[name].type))
        return found

    @classmethod
    def table(cls) -> str:
        """Return the options as a Markdown table."""
        docs, lines = attribute_docs(cls), ["| option | value | default | meaning |", "|---|---|---|---|"]
        for each in cls.parameters():
            default = "" if each.default is each.empty else f"`{each.default!r}`"
            lines.append(f"| `{each.name}` | {kinds(cls)[each.name].words} | {default} | {docs.get(each.name, '')} |")
        return "\n".join(lines)


def _error(name: str, kind: Kind, value: Any) -> OptionError:
    hint = nearest(value, kind.choices) if kind.choices and isinstance(value, str) else ""
    hint = hint if hint.startswith("Did") else ""  # all of them are in the sentence
    return OptionError(name, f"must be {kind.words}, got {_shown(value)}. {hint}".rstrip())


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # a whole number with more digits than Python writes
        return "a number that is too long to show"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _default_of(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a field, or ``dataclasses.MISSING``."""
    return field.default_factory() if callable(field.default_factory) else field.default


def kinds(cls: type[Options]) -> Mapping[str, Kind]:
    """Return the kind of each option, cached per class."""
    found: Mapping[str, Kind] | None = cls.__dict__.get("_kinds")
    if found is None:
        hints = _hints(cls)
        fields = dataclasses.fields(cls)
        found = {}
        for field in fields:
            try:
                kind = kind_of(hints[field.name])
            except TypeError as error:
                raise ConfigError(f"the option {field.name} of {cls.__qualname__} {error}") from None
            is_valid = kind.read(field.default) is field.default
            found[field.name] = kind._replace(default=field.default) if is_valid else kind
        cls._required = frozenset(field.name for field in fields if _default_of(field) is dataclasses.MISSING)
        cls._kinds = found
    return found


def _hints(cls: type[Options]) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"a type in {cls.__qualname__} cannot be resolved: {error}. Import it outside of `if TYPE_CHECKING`."
        ) from None


def _own(cls: type[Options]) -> list[str]:
    """Return the options that a class itself declares."""
    return [name for name in inspect.get_annotations(cls) if name in kinds(cls)]


def attribute_docs(cls: type[Any]) -> dict[str, str]:
    """Return the string below each field of a class and its bases; reads the source, so only for docs and help."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        try:
            source = inspect.getsource(base)
        except (OSError, TypeError):  # the source is not installed, or no Python
            continue
        body = ast.parse(textwrap.dedent(source)).body[0].body  # type: ignore[attr-defined]  # a class
        for line, after in pairwise(body):
            match line, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


def kind_of(hint: Any) -> Kind:
    """Return the kind of a type hint's values.

    Raises:
        TypeError: Options cannot have this type.

    >>> kind_of(Annotated[int, between(1, 9)] | None).words
    'a whole number in [1, 9] or None'
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, rules = kind_of(arguments[0]), tuple(each for each in arguments[1:] if isinstance(each, Rule))
        is_free = kind.is_free and not any(rule.choices for rule in rules)
        return Kind(kind.noun, _ruled(kind.read, rules), (*kind.rules, *rules), is_free)
    if origin is Literal:
        words = f"one of {', '.join(map(repr, arguments))}"
        return Kind("", lambda value: _equal(value, arguments), (Rule(words, lambda _: True, arguments),))
    if origin in (Union, UnionType):
        inner = [kind_of(each) for each in arguments]
        noun, is_free = " or ".join(each.words for each in inner), any(each.is_free for each in inner)
        return Kind(noun, lambda value: _first(value, inner), (), is_free)
    if origin is tuple and arguments[1:] == (Ellipsis,):
        item = kind_of(arguments[0])
        return Kind(f"a list, each {item.words}", lambda value: _items(value, item), (), item.is_free)
    if isinstance(hint, type) and issubclass(hint, Options):
        return Kind("a table of options", lambda value: _nested(hint, value))
    if hint in _SCALARS:
        return _SCALARS[hint]
    kind = origin or hint  # such as Mapping or Path
    if not isinstance(kind, type) or kind in (tuple, list, set, Any):
        raise TypeError(f"cannot have the type {hint}: use tuple[X, ...] for lists, or a class.")
    return Kind(f"a {kind.__name__.lower()}", lambda value: value if isinstance(value, kind) else _WRONG, (), True)


def _ruled(read: Callable[[Any], Any], rules: Sequence[Rule]) -> Callable[[Any], Any]:
    tests = tuple(rule.holds for rule in rules)

    def ruled(value: Any) -> Any:
        found = read(value)
        if found is not _WRONG:
            try:
                if not all(holds(found) for holds in tests):
                    return _WRONG
            except TypeError as error:
                raise ConfigError(f"a rule does not apply to options of its type: {error}.") from None
        return found

    return ruled


OptionsT = TypeVar("OptionsT", bound=Options)


def _nested(cls: type[OptionsT], value: Any) -> Any:
    if isinstance(value, dict):
        return cls.build("", value)
    return value if isinstance(value, cls) else _WRONG


def _equal(value: Any, choices: Collection[Any]) -> Any:
    kind = str if isinstance(value, str) else type(value)  # NumPy and enumerations have texts of their own type
    return next((each for each in choices if type(each) is kind and each == value), _WRONG)


def _first(value: Any, kinds: Sequence[Kind]) -> Any:
    return next((found for kind in kinds if (found := kind.read(value)) is not _WRONG), _WRONG)


def _items(value: Any, item: Kind) -> Any:
    found = tuple(item.read(each) for each in value) if isinstance(value, list | tuple) else (_WRONG,)
    return _WRONG if any(each is _WRONG for each in found) else found


def _whole(value: Any) -> Any:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -_LARGEST <= value <= _LARGEST else _WRONG


def _real(value: Any) -> Any:
    is_finite = math.isfinite(value) if isinstance(value, float) else _whole(value) is not _WRONG
    return value if is_finite else _WRONG


def _exactly(kind: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kind) else _WRONG


_SCALARS = {
    int: Kind("a whole number", _whole),
    float: Kind("a number", _real),
    bool: Kind("True or False", _exactly(bool)),
    str: Kind("text", _exactly(str), (), True),
    NoneType: Kind("None", _exactly(NoneType)),
}


def constructor_signature(kind: type) -> inspect.Signature:
    """Return the signature of a class's ``__init__``, without ``self``, or of its declared options.

    On Python 3.11.0 to 3.11.4, ``inspect.signature`` prefers an inherited ``__new__`` to an inherited ``__init__``.

    >>> class Door:
    ...     def __init__(self, width=1): ...
    >>> str(constructor_signature(Door))
    '(width=1)'
    """
    declared = getattr(kind, "__signature__", None)
    if isinstance(declared, inspect.Signature):
        return declared
    found = inspect.signature(kind.__init__)  # type: ignore[misc]  # it is that of this class
    return found.replace(parameters=list(found.parameters.values())[1:], return_annotation=inspect.Signature.empty)
