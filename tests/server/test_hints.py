"""Reading signatures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.hints import MISSING, read_signature, summary_of

if TYPE_CHECKING:
    from decimal import Decimal


class Context:
    pass


class Global:
    pass


def plain(a: int, b: str = "x", *, c: float, d: bool | None = None) -> dict[str, int]:
    raise NotImplementedError


def test_names_types_and_defaults_are_read() -> None:
    signature = read_signature(plain)
    assert signature.label == "plain"
    assert signature.names == ("a", "b", "c", "d")
    assert signature.types == {
        "a": int,
        "b": str,
        "c": float,
        "d": bool | None,
        "return": dict[str, int],
    }
    assert signature.defaults == {"b": "x", "d": None}
    assert signature.returns == dict[str, int]


def test_a_function_without_annotations_has_none() -> None:
    signature = read_signature(lambda a, b=1: None)
    assert signature.names == ("a", "b")
    assert signature.types == {}
    assert signature.returns is MISSING


def test_a_coroutine_function_returns_what_is_awaited() -> None:
    async def run() -> None: ...

    assert read_signature(run).returns is None


def test_methods_and_callable_objects_have_no_self() -> None:
    class Thing:
        def method(self, a: int) -> None: ...

        def positional(self, /, a: int) -> None: ...

        @classmethod
        def of_class(cls, a: int) -> None: ...

        @staticmethod
        def static(a: int) -> None: ...

        async def __call__(self, a: int) -> None: ...

    thing = Thing()
    for callback in (
        thing.method,
        thing.positional,
        thing.of_class,
        Thing.of_class,
        thing.static,
        Thing.__dict__["static"],
        thing,
    ):
        assert read_signature(callback).names == ("a",)


def test_decorators_that_say_so_are_seen_through() -> None:
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @decorated
    @decorated
    async def run(a: int, b: Global | None = None) -> str:
        raise NotImplementedError

    signature = read_signature(run)
    assert signature.names == ("a", "b")
    assert signature.types["b"] == Global | None
    assert signature.defaults == {"b": None}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda *args: None, r"takes \*args.*name each parameter"),
        (lambda **kwargs: None, r"takes \*\*kwargs.*name each parameter"),
        (lambda a, /, b: None, "remove the `/`"),
        (len, "len is not written in Python"),
        (dict, "dict is not written in Python"),
        (Global, "Global is not written in Python"),
        (functools.partial(plain, 1), "partial is not written in Python.*wrap it in a `def`"),
    ],
)
def test_what_cannot_be_called_by_name_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_signature(function)


def test_generators_are_refused() -> None:
    def several() -> Any:
        yield 1

    async def later() -> Any:
        yield 1

    for function in (several, later):
        with pytest.raises(ConfigurationError, match="return one value instead of yielding"):
            read_signature(function)


def test_strings_are_resolved_where_the_function_sees_them() -> None:
    class Local:
        pass

    class Enclosed:
        pass

    def function(
        a: Global,
        b: Local,
        c: list[Local],
        d: Enclosed | None = None,
        e: Literal["Local"] = "Local",
        f: Annotated[Local, "text"] = Local(),  # noqa: B008  # a default of its own
    ) -> None:
        Enclosed()  # closed over, unlike Local

    types = read_signature(function).types
    assert types["a"] is Global
    assert types["b"] is Local
    assert types["c"] == list[Local]
    assert types["d"] == Enclosed | None
    assert types["e"] == Literal["Local"]
    assert types["f"] == Annotated[Local, "text"]


def test_one_name_alone_is_resolved_in_the_function_around() -> None:
    class Local:
        pass

    def deeper() -> None:
        def function(a: Local) -> None: ...

        assert read_signature(function).types["a"] is Local

    deeper()
    # A closed-over name that has no value yet is looked up elsewhere.
    if not TYPE_CHECKING:

        def early(a: late) -> Any:
            return late

        with pytest.raises(ConfigurationError, match="'late'"):
            read_signature(early)
        late = int
        assert read_signature(early).types["a"] is int


def test_nested_strings_are_resolved() -> None:
    function = eval("lambda a: None")
    function.__annotations__ = {"a": list["Global"], "b": "list['Global']", "c": Literal["x"]}
    function.__globals__["Global"] = Global
    types = read_signature(function).types
    assert types["a"] == list[Global]
    assert types["b"] == list[Global]
    function.__annotations__ = {"a": Annotated[list["Global"], "text"]}
    assert read_signature(function).types["a"] == Annotated[list[Global], "text"]


def test_the_context_may_be_imported_for_type_checking_only() -> None:
    def function(context: Decimal, other: int) -> None: ...

    class Fallback:
        pass

    Fallback.__name__ = "Decimal"
    signature = read_signature(function, fallback=Fallback)
    assert signature.types["context"] is Fallback

    def optional(context: Decimal | None = None) -> None: ...

    assert read_signature(optional, fallback=Fallback).types["context"] == Fallback | None


def test_a_name_that_is_nowhere_is_named() -> None:
    def one(a: Decimal) -> None: ...

    def nested(a: list[Decimal]) -> None: ...

    for function in (one, nested):
        with pytest.raises(ConfigurationError, match=r"'Decimal'.*outside `if TYPE_CHECKING`"):
            read_signature(function, fallback=Context)


def test_an_annotation_that_is_no_type_is_refused() -> None:
    function = eval("lambda a: None")
    for nonsense in ("1 +", "int.nothing", "5 | 6 | list", "{}[int]"):
        function.__annotations__ = {"a": nonsense}
        with pytest.raises(ConfigurationError, match="annotation that is no type"):
            read_signature(function)


def test_a_far_frame_is_not_searched_for_ever() -> None:
    class Local:
        pass

    def function(a: Local) -> None: ...

    def deep(levels: int) -> Any:
        return deep(levels - 1) if levels else read_signature(function)

    assert deep(10).types["a"] is Local
    with pytest.raises(ConfigurationError, match="'Local'"):
        deep(100)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ""),
        ("One.", "One."),
        ("  One.  ", "One."),
        ("\n    First.\n\n      Deeper.\n    Last.\n    ", "First.\n\n  Deeper.\nLast."),
        ("First.\n\tTabbed.", "First.\nTabbed."),
        (7, ""),
    ],
)
def test_a_docstring_loses_its_indentation(text: Any, expected: str) -> None:
    """PEP 257 §Handling Docstring Indentation."""
    function = eval("lambda: None")
    function.__doc__ = text
    assert summary_of(function) == expected
