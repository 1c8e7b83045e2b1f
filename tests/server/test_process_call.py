"""Names of functions for another process, and words for its end."""

from __future__ import annotations

import functools
import os
import signal

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.process_call import ended_by, target_of


class Class:
    def method(self) -> None: ...

    @classmethod
    def of_class(cls) -> None: ...

    @staticmethod
    def of_nobody() -> None: ...


def inner() -> object:
    def function() -> None: ...

    return function


@pytest.mark.parametrize(
    ("function", "target"),
    [
        (inner, f"{__name__}:inner"),
        (os.getpid, "posix:getpid"),
        (Class.of_class, f"{__name__}:Class.of_class"),
        (Class.of_nobody, f"{__name__}:Class.of_nobody"),
    ],
)
def test_a_function_of_the_top_level_has_a_name(function: object, target: str) -> None:
    assert target_of(function) == target


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda: None, "top level"),
        (inner(), "top level"),
        (Class().method, "bound to an object"),
        (functools.partial(inner), "has no name"),
        (Class(), "has no name"),
    ],
)
def test_what_another_process_could_not_find_is_refused(function: object, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        target_of(function)


def test_the_end_of_a_process_is_told_in_words() -> None:
    assert ended_by(3) == "its process ended with status 3"
    assert ended_by(-signal.SIGSEGV) == "its process was ended by SIGSEGV"
    assert ended_by(-40) == "its process was ended by signal 40"
