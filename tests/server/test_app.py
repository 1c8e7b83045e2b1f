"""Options of a server, refused in one sentence each. What it does: `tests/acceptance`."""

from typing import Any

import pytest

from raxol_mcp import ConfigurationError, Server


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": ""}, "name must be text that is not empty, got: ''"),
        ({"cache_ttl": -1}, "cache_ttl must be from 0 to 2147483648 seconds, got: -1"),
        ({"page_size": 0}, "page_size must be from 1 to 1000, got: 0"),
        ({"page_size": 1001}, "page_size must be from 1 to 1000, got: 1001"),
        ({"page_size": True}, "page_size must be from 1 to 1000, got: True"),
        ({"lifespan": 5}, "lifespan must be callable, got: 5"),
        ({"unknown_tool_reply": "no"}, "unknown_tool_reply must be callable, got: 'no'"),
        ({"observe": []}, "observe must be callable, got: []"),
        ({"authorizer": "no"}, "authorizer must be callable, got: 'no'"),
        ({"read_authorizer": "no"}, "read_authorizer must be callable, got: 'no'"),
        ({"state_key": "k" * 32}, "state_key must be bytes, got a str"),
    ],
)
def test_an_option_that_cannot_be_served_is_refused(options: dict[str, Any], sentence: str) -> None:
    """ours: at once, not at the first request."""
    with pytest.raises(ConfigurationError) as caught:
        Server(**options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("page_size", [1, 1000])
def test_a_page_size_at_its_bounds_is_taken(page_size: int) -> None:
    Server(page_size=page_size)
