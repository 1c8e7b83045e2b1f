"""The boot gate: production refuses to be open to anyone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.deployment import (
    ENVIRONMENT_VARIABLE,
    authorization_required,
    enforce_authorization,
    enforce_read_authorization,
    environment,
    production,
)

Gate = Callable[..., None]
both_gates = pytest.mark.parametrize("gate", [enforce_authorization, enforce_read_authorization])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("dev", "dev"),
        ("test", "test"),
        ("production", "production"),
        ("", "production"),
        ("DEV", "production"),
        (" dev", "production"),
        ("development", "production"),
        ("staging", "production"),
    ],
)
def test_only_dev_and_test_are_not_production(
    monkeypatch: pytest.MonkeyPatch, given: str, expected: str
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, given)
    assert environment() == expected
    assert production() is (expected == "production")


def test_an_environment_that_says_nothing_is_production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    assert production()
    assert authorization_required()


def test_the_environment_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "dev")
    assert not authorization_required()
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "prod")
    assert authorization_required()


@pytest.mark.parametrize("env", ["dev", "production"])
def test_an_override_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch, env: str) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, env)
    assert authorization_required(True)
    assert not authorization_required(False)


@pytest.mark.parametrize("override", ["false", 0, 1, []])
def test_an_override_that_is_no_bool_refuses_to_boot(override: Any) -> None:
    with pytest.raises(ConfigurationError, match="True, False or None"):
        authorization_required(override)


@both_gates
def test_a_configured_server_boots_wherever_it_is(gate: Gate) -> None:
    gate(True, required=True)
    gate(True, required=False)


@both_gates
def test_an_open_server_boots_where_nothing_is_required(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate(False, required=False)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "test")
    gate(False)


@both_gates
def test_an_open_server_refuses_to_boot_in_production(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    with pytest.raises(ConfigurationError, match="MCP transport refuses to boot: authorization"):
        gate(False)


@both_gates
def test_only_true_counts_as_configured(gate: Gate) -> None:
    with pytest.raises(ConfigurationError, match="refuses to boot"):
        gate(lambda *_: None, required=True)


def test_the_refusal_names_who_refuses_and_the_option_to_set() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        enforce_authorization(False, context="The HTTP transport", required=True)
    text = str(refusal.value)
    assert text.startswith("The HTTP transport refuses to boot: ")
    assert all(word in text for word in ("authorizer=", "--authorizer", "--allow-tools"))
    assert "require_authorization=False" in text


def test_the_refusal_of_open_reads_names_the_options_for_reads() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        enforce_read_authorization(False, required=True)
    text = str(refusal.value)
    assert all(word in text for word in ("read_authorizer=", "--read-authorizer", "--allow-reads"))
