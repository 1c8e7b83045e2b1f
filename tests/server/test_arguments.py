"""Arguments that do not fit, and copies of those that do."""

import pytest

from raxol_mcp.server.arguments import ArgumentsInvalid, copied


def test_the_error_is_the_sentence() -> None:
    assert str(ArgumentsInvalid("Invalid arguments: 'a' is required.")) == (
        "Invalid arguments: 'a' is required."
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"a": 1, "b": "x", "c": None, "d": True, "e": 1.0},
        {"a": {"b": [1, 2.5, "\U0001f600", {"c": []}]}, "d": [-(2**63), 2**63 - 1, -0.0]},
    ],
)
def test_a_copy_is_equal_and_shares_nothing(arguments: dict[str, object]) -> None:
    copy = copied(arguments)
    assert repr(copy) == repr(arguments)
    assert copy is not arguments
    for name, value in arguments.items():
        assert not isinstance(value, dict | list) or copy[name] is not value
