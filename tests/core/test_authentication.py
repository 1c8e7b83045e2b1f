"""core/authentication.py: two values, equal by what they hold, and nobody changes them."""

import pytest

from raxol_mcp.core.authentication import Authenticated, Challenge


def test_they_are_values() -> None:
    assert Authenticated("iss|a", frozenset({"x"})) == Authenticated("iss|a", frozenset({"x"}))
    assert Authenticated(None).scopes == frozenset()
    assert Challenge(401, "Bearer", "no") != Challenge(401, None, "no")


def test_they_cannot_be_changed() -> None:
    """ours: a principal is a fact of the server; nothing on the way may edit it."""
    with pytest.raises(AttributeError):
        Authenticated("a").principal = "b"  # type: ignore[misc]  # what must not work
    with pytest.raises(AttributeError):
        Challenge(401, None, "no").status = 200  # type: ignore[misc]  # what must not work
