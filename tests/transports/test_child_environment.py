"""transports/child_environment.py: a server gets what it needs, and none of our secrets."""

import pytest

from raxol_mcp.transports.child_environment import child_environment, is_own_secret

PARENT = {
    "HOME": "/home",
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "LC_X": "",
    "GITHUB_TOKEN": "theirs",
    "RAXOL_MCP_ENV": "dev",
    "RAXOL_MCP_STATE_KEY": "ours",
    "RAXOL_MCP_TOKEN": "ours",
}


def test_everything_is_inherited_but_our_own_secrets() -> None:
    """ours: a child inherited the secrets of the program that started it."""
    kept = {name: value for name, value in PARENT.items() if value != "ours"}
    assert child_environment(PARENT, {}) == kept


def test_what_is_named_by_drop_is_held_back() -> None:
    kept = child_environment(PARENT, {}, drop=("GITHUB_TOKEN", "LC_X", "ABSENT"))
    assert kept.keys() == {"HOME", "PATH", "LC_ALL", "RAXOL_MCP_ENV"}


def test_without_inheritance_only_the_base_is_left() -> None:
    kept = child_environment(PARENT, {"API": "1"}, inherit=False, drop=("LC_X",))
    assert kept == {"HOME": "/home", "PATH": "/bin", "LC_ALL": "C.UTF-8", "API": "1"}


def test_what_is_given_by_name_wins_over_every_rule() -> None:
    given = {"RAXOL_MCP_STATE_KEY": "meant", "GITHUB_TOKEN": "meant", "PATH": "/opt", "EMPTY": ""}
    kept = child_environment(PARENT, given, inherit=False, drop=("GITHUB_TOKEN", "PATH"))
    assert kept == {"HOME": "/home", "LC_ALL": "C.UTF-8", "LC_X": "", **given}


def test_the_mappings_that_are_given_stay_as_they_are() -> None:
    parent, given = dict(PARENT), {"A": "1"}
    child_environment(parent, given)["B"] = "2"
    assert (parent, given) == (PARENT, {"A": "1"})


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("RAXOL_MCP_STATE_KEY", True),
        ("RAXOL_MCP_KEY", True),
        ("RAXOL_MCP_HTTP_BEARER_TOKEN", True),
        ("RAXOL_MCP_CLIENT_SECRET", True),
        ("RAXOL_MCP_PASSWORD", True),
        ("RAXOL_MCP_ENV", False),
        ("RAXOL_MCP_KEYS", False),
        ("RAXOL_MCP_MONKEY", False),
        ("RAXOL_MCP_KEY_ID", False),
        ("MY_RAXOL_MCP_KEY", False),
        ("raxol_mcp_state_key", False),
        ("API_KEY", False),
    ],
)
def test_a_secret_of_ours_is_known_by_its_name(name: str, secret: bool) -> None:
    assert is_own_secret(name) is secret
