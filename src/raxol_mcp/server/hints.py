"""What the signature of a Python function says: names, types, defaults.

Not what it means for a tool. Read from the code object and not with `inspect.signature`: that
costs more than everything else in registering a tool, and its module would be loaded for it.
"""

from __future__ import annotations

import builtins
import sys
import typing
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any, Final, get_args, get_origin

import msgspec

from raxol_mcp.errors import ConfigurationError

__all__ = ["MISSING", "Signature", "read_signature", "summary_of"]

MISSING: Final = msgspec.NODEFAULT

_ARGS: Final = 0x04  # the CO_* flags of the inspect module
_KWARGS: Final = 0x08
_GENERATOR: Final = 0x20
_ASYNC_GENERATOR: Final = 0x200

_CALL: Final = "__call__"
_MAX_FRAMES: Final = 64
_BUILTINS: Final = vars(builtins)


class Signature(msgspec.Struct, frozen=True, eq=False):
    """A function as it is called.

    `names` are its parameters in order; `types` has the ones with an annotation, strings
    resolved; `defaults` the ones with a default; `returns` is `MISSING` without an annotation.
    """

    label: str
    names: tuple[str, ...]
    types: Mapping[str, object]
    defaults: Mapping[str, object]
    returns: object


def read_signature(callback: Callable[..., object], *, fallback: type | None = None) -> Signature:
    """Read a function, a method or an object with `__call__`, through decorators.

    A decorator is seen through when it sets `__wrapped__`, as `functools.wraps` does. A name in
    a string annotation is looked up where the function sees it, in the functions around it while
    they run, and at last as the class `fallback`, for an import under `TYPE_CHECKING`. Raises
    ConfigurationError for what cannot be called with named arguments, and for an annotation
    whose names are not found.
    """
    outer, function, skipped = _unwrapped(callback)
    label = function.__qualname__.rpartition(">.")[2]
    _refuse_flags(outer, function, skipped, label)
    code = function.__code__
    count = code.co_argcount
    names = code.co_varnames[skipped : count + code.co_kwonlyargcount]
    defaults: dict[str, object] = {}
    if values := function.__defaults__:
        defaults.update(zip(code.co_varnames[count - len(values) : count], values, strict=True))
    if function.__kwdefaults__:
        defaults.update(function.__kwdefaults__)
    types = _annotations(function, label, fallback)
    return Signature(label, names, types, defaults, types.get("return", MISSING))


def summary_of(callback: Callable[..., object]) -> str:
    """Return the docstring without its indentation, or an empty string."""
    text = callback.__doc__
    if not isinstance(text, str):
        return ""
    if "\n" not in text:
        return text.strip()
    first, *rest = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:].rstrip() for line in rest)]).strip()


def _unwrapped(callback: Callable[..., object]) -> tuple[FunctionType, FunctionType, int]:
    """Return what is called, the function whose signature counts, and 1 for a bound `self`."""
    outer: FunctionType | None = None
    found: object = callback
    skipped = 0
    while True:
        if isinstance(found, MethodType):
            found = found.__func__
            skipped = 1
        if isinstance(found, FunctionType):
            outer = outer or found
            if not hasattr(found, "__wrapped__"):
                return outer, found, skipped
            found = found.__wrapped__
        elif isinstance(found, staticmethod):
            found = found.__func__
        elif outer is None and isinstance(call := _call_of(found), FunctionType):
            found = call
            skipped = 1
        else:
            name = getattr(callback, "__qualname__", type(callback).__name__)
            raise ConfigurationError(
                f"{name} is not written in Python as a function or method; wrap it in a `def` "
                "with annotated parameters"
            )


def _call_of(found: object) -> object:
    return None if isinstance(found, type) else getattr(type(found), _CALL, None)


def _refuse_flags(outer: FunctionType, function: FunctionType, skipped: int, label: str) -> None:
    code = function.__code__
    if code.co_flags & (_ARGS | _KWARGS):
        star = "*args" if code.co_flags & _ARGS else "**kwargs"
        raise ConfigurationError(
            f"{label} takes {star}, which has no names to offer; name each parameter"
        )
    if code.co_posonlyargcount > skipped:
        raise ConfigurationError(
            f"{label} has positional-only parameters, but arguments come by name; remove the `/`"
        )
    if outer.__code__.co_flags & (_GENERATOR | _ASYNC_GENERATOR):
        raise ConfigurationError(f"{label} is a generator; return one value instead of yielding")


def _annotations(function: FunctionType, label: str, fallback: type | None) -> Mapping[str, object]:
    try:
        written = function.__annotations__
    except NameError as error:  # pragma: no cover - Python 3.14 resolves them here
        raise _unresolved(label, error) from None
    types = dict(written)
    lookup: _Names | None = None
    for name, annotation in written.items():
        if isinstance(annotation, str):
            lookup = lookup or _Names(function, fallback)
            if annotation.isidentifier() and (value := lookup.find(annotation)) is not MISSING:
                types[name] = value
                continue
        elif isinstance(annotation, type) or not _has_reference(annotation):
            continue
        return _evaluated(function, lookup or _Names(function, fallback), label)
    return types


def _has_reference(annotation: object) -> bool:
    """Say whether there is a string in it that stands for a type."""
    if get_origin(annotation) is typing.Literal:
        return False
    if get_origin(annotation) is typing.Annotated:
        return _has_reference(get_args(annotation)[0])
    if isinstance(annotation, str | typing.ForwardRef):
        return True
    return any(map(_has_reference, get_args(annotation)))


def _evaluated(function: FunctionType, lookup: _Names, label: str) -> Mapping[str, object]:
    try:
        return typing.get_type_hints(function, function.__globals__, lookup, include_extras=True)
    except NameError as error:
        raise _unresolved(label, error) from None
    except Exception as error:  # whatever the user's expressions raise
        raise ConfigurationError(f"{label} has an annotation that is no type: {error}") from error


def _unresolved(label: str, error: NameError) -> ConfigurationError:
    return ConfigurationError(
        f"{label}: the name {error.name!r} in an annotation cannot be resolved; define or import "
        "it at module level, outside `if TYPE_CHECKING`"
    )


class _Names(dict[str, Any]):
    """Where the names in a string annotation are looked up.

    A mapping for `eval`, which asks it before the globals: what is not in the closure is only
    given here when the globals do not have it either.
    """

    def __init__(self, function: FunctionType, fallback: type | None) -> None:
        super().__init__()
        self["None"] = None  # a constant of the language, found in no namespace
        self._function = function
        self._fallback = fallback
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                self[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue

    def find(self, name: str) -> object:
        """Return the value of a name, or MISSING."""
        function = self._function
        for names in (self, function.__globals__, _BUILTINS):
            value = dict.get(names, name, MISSING)
            if value is not MISSING:
                return value
        return self._outside(name)

    def __missing__(self, name: str) -> object:
        function = self._function
        if name not in function.__globals__ and name not in _BUILTINS:
            value = self._outside(name)
            if value is not MISSING:
                return value
        raise KeyError(name)

    def _outside(self, name: str) -> object:
        """Look in the running functions that this one is written in, then at the fallback."""
        around = self._function.__qualname__.split(".<locals>")[:-1]
        wanted = {".<locals>".join(around[: end + 1]) for end in range(len(around))}
        frame = sys._getframe(1) if wanted else None
        for _ in range(_MAX_FRAMES):
            if frame is None:
                break
            # A frame's locals are copied when they are asked for, so the cheap test comes first.
            if frame.f_code.co_qualname in wanted and name in frame.f_locals:
                value: object = frame.f_locals[name]
                return value
            frame = frame.f_back
        fallback = self._fallback
        return fallback if fallback is not None and fallback.__name__ == name else MISSING
