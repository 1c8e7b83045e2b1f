"""The options of a server on the network: what they take, and what they refuse."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from raxol_mcp import ConfigurationError, Server, allow_all
from raxol_mcp.cli.network import Network

ISSUER = "https://login.example.com"
KEYS = "https://login.example.com/keys"
PUBLIC = "https://mcp.example.com/mcp"
TOKENS = "alice b6_8kJ2mQx0v5cT1yR7nLw files:read\n"
JWT: Mapping[str, Any] = {"jwt_issuer": ISSUER, "jwks_url": KEYS}


@pytest.fixture
def server() -> Server:
    """Return a server that somebody guarded."""
    return Server(
        "guarded",
        authorizer=allow_all(),
        authorizer_source="configured",
        read_authorizer=allow_all(),
    )


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    """Write a file with one token; return its path."""
    path = tmp_path / "tokens.txt"
    path.write_text(TOKENS, "utf-8")
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        *(
            (
                {"http": True, "tokens": "a", option: ("b", ",")},
                f"--{option[:-1].replace('_', '-')} names nothing: give a name, or leave it out",
            )
            for option in ("allowed_hosts", "allowed_origins", "required_scopes")
        ),
        ({"port": 0}, "--port belongs to --http: name that as well"),
        (
            {"host": "::1", "allowed_hosts": ("a",)},
            "--host and --allowed-host belongs to --http: name that as well",
        ),
        (
            {"http": True, "tokens": "a", "tokens_env": "B"},
            "--tokens and --tokens-env exclude each other: name one",
        ),
        (
            {"http": True, "tokens": "a", "allow_unauthenticated": True},
            "--tokens and --allow-unauthenticated exclude each other: name one",
        ),
        (
            {"http": True, "required_scopes": ("a",)},
            "--required-scope needs tokens: name where they come from",
        ),
        (
            {"http": True, "jwks_url": KEYS},
            "--jwks-url belongs to --jwt-issuer: name that too",
        ),
        ({"http": True, "jwt_issuer": ISSUER}, "--jwt-issuer needs --jwks-url: where its keys are"),
        (
            {"http": True, **JWT},
            "--jwt-issuer needs --jwt-audience: the public URL of this server",
        ),
    ],
)
def test_options_that_fit_nothing_are_refused(options: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        Network(**options)
    assert caught.value.message == sentence


@pytest.mark.parametrize("source", ["tokens", "tokens_env", "jwt_issuer"])
def test_an_empty_source_of_tokens_does_not_open_the_server(source: str, server: Server) -> None:
    """As `--tokens "$UNSET"` is written by a shell."""
    options: dict[str, Any] = {"http": True, source: ""}
    if source == "jwt_issuer":
        options |= {"jwks_url": KEYS, "jwt_audience": PUBLIC}
    network = Network(**options)
    assert network.authenticated
    with pytest.raises(ConfigurationError):
        network.authenticator()
    assert len(network.refusals(server)) == 1


def test_this_machine_alone_needs_no_tokens(server: Server) -> None:
    network = Network(http=True)
    assert network.authenticator() is None
    assert (network.hosts, network.origins) == (None, None)
    assert network.refusals(server) == []


def test_tokens_of_a_file_and_of_the_environment_are_taken(
    tokens: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKENS", TOKENS)
    for network in (Network(http=True, tokens=tokens), Network(http=True, tokens_env="MY_TOKENS")):
        authenticator = network.authenticator()
        assert authenticator is not None
        assert authenticator.metadata() is None
        assert network.refusals(server) == []


def test_the_audience_of_an_issuer_names_this_server() -> None:
    """RFC 9728: clients are told where tokens come from."""
    scopes = ("files:read,files:write",)
    network = Network(http=True, **JWT, jwt_audience=PUBLIC, required_scopes=scopes)
    authenticator = network.authenticator()
    assert authenticator is not None
    assert authenticator.metadata() == (
        "/.well-known/oauth-protected-resource/mcp",
        b'{"resource":"https://mcp.example.com/mcp",'
        b'"authorization_servers":["https://login.example.com"],'
        b'"bearer_methods_supported":["header"],'
        b'"scopes_supported":["files:read","files:write"]}',
    )


def test_an_audience_that_is_no_address_needs_one_beside_it(server: Server) -> None:
    network = Network(http=True, **JWT, jwt_audience="api://mcp")
    (sentence,) = network.refusals(server)
    assert sentence.startswith(
        "--jwt-audience is not the public URL of this server, so name that with --public-url ("
    )
    assert (
        Network(http=True, **JWT, jwt_audience="api://mcp", public_url=PUBLIC).refusals(server)
        == []
    )
    assert Network(http=True, **JWT, public_url=PUBLIC).refusals(server) == []


def test_a_public_url_that_is_none_is_refused(server: Server) -> None:
    network = Network(http=True, **JWT, jwt_audience=PUBLIC, public_url="mcp.example.com")
    (sentence,) = network.refusals(server)
    assert "the public URL of the server" in sentence
    assert "--public-url" not in sentence


def test_an_address_of_others_needs_tokens_and_names(tokens: str, server: Server) -> None:
    (sentence,) = Network(http=True, host="0.0.0.0").refusals(server)
    assert "--tokens, --tokens-env or --jwt-issuer" in sentence
    assert "--allow-unauthenticated" in sentence
    for known in ({"tokens": tokens}, {"allow_unauthenticated": True}):
        options: dict[str, Any] = {"http": True, "host": "0.0.0.0", **known}
        (sentence,) = Network(**options).refusals(server)
        assert "--allowed-host" in sentence
        named = Network(**options, allowed_hosts=("mcp.example.com,localhost",))
        assert named.hosts == ["mcp.example.com", "localhost"]
        assert named.refusals(server) == []


def test_what_is_no_host_or_origin_is_refused(server: Server) -> None:
    for network in (
        Network(http=True, allowed_hosts=("a b",)),
        Network(http=True, allowed_origins=("a.example",)),
    ):
        (sentence,) = network.refusals(server)
        assert sentence.startswith("not a")


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (
            {"authorizer_source": "default"},
            "may call tools (name --allow-tools, --allow-all-tools or --authorizer); RAXOL",
        ),
        ({"read_authorizer": None}, "may read (name --allow-reads or --read-authorizer); RAXOL"),
    ],
)
def test_a_server_that_nobody_guarded_is_refused_in_production_alone(
    missing: Mapping[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """server-2.8.0: the boot gate, which decides at run time; unknown counts as production."""
    options: dict[str, Any] = {
        "authorizer": allow_all(),
        "authorizer_source": "configured",
        "read_authorizer": allow_all(),
        **missing,
    }
    server = Server("open", **options)
    for environment in ("", "prod", "TEST"):
        monkeypatch.setenv("RAXOL_MCP_ENV", environment)
        (sentence,) = Network(http=True).refusals(server)
        assert sentence.startswith("open is not served over a network in production, because nob")
        assert told in sentence
        assert "\n" not in sentence
    for environment in ("dev", "test"):
        monkeypatch.setenv("RAXOL_MCP_ENV", environment)
        assert Network(http=True).refusals(server) == []
