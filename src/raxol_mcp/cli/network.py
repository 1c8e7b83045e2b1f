"""The options of a server on the network: where it listens, who is let in, and who they are.

`serve` and `check` take the same ones, so that `check` judges exactly what `serve` serves. Secrets
are named and never given: other users of the machine can read a command line. What these options
need beyond click is imported when they are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Final

import click

from raxol_mcp.cli.guards import names_in, refuse_empty
from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.values import Value

if TYPE_CHECKING:
    from raxol_mcp.server.app import Server
    from raxol_mcp.server.auth import BearerAuthenticator, TokenVerifier
    from raxol_mcp.server.protected_resource import ProtectedResource

__all__ = ["HOST", "PATH", "PORT", "Network", "network_options"]

HOST: Final = "127.0.0.1"
PORT: Final = 8000
PATH: Final = "/mcp"

# Each says where tokens come from, so one is enough; the last stands for all of JWT's.
_SOURCES: Final = ("tokens", "tokens_env", "jwt_issuer")
_FOR_JWT: Final = ("jwks_url", "jwt_audience", "public_url")


class Network(Value, frozen=True, kw_only=True):
    """What the options of one command line say; None and an empty tuple: nothing.

    Raises click.UsageError for options that contradict each other, for those that mean nothing
    without another one, and for a list without a name.
    """

    http: bool = False
    host: str | None = None
    port: int | None = None
    path: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    allow_unauthenticated: bool = False
    tokens: str | None = None
    tokens_env: str | None = None
    jwt_issuer: str | None = None
    jwks_url: str | None = None
    jwt_audience: str | None = None
    public_url: str | None = None
    required_scopes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named = [name for name in self.__struct_fields__ if self._names(name)]
        for name in ("allowed_hosts", "allowed_origins", "required_scopes"):
            refuse_empty(_options([name]), getattr(self, name))
        if named and not self.http:
            raise click.UsageError(f"{_options(named)} belongs to --http: name that as well")
        sources = [name for name in _SOURCES if name in named]
        if len(sources) > 1:
            raise click.UsageError(f"{_options(sources)} exclude each other: name one")
        if sources and self.allow_unauthenticated:
            raise click.UsageError(
                f"{_options(sources)} and --allow-unauthenticated exclude each other: name one"
            )
        if self.required_scopes and not sources:
            raise click.UsageError("--required-scope needs tokens: name where they come from")
        self._check_jwt(named)

    def _check_jwt(self, named: list[str]) -> None:
        if self.jwt_issuer is None:
            odd = [name for name in _FOR_JWT if name in named]
            if odd:
                raise click.UsageError(f"{_options(odd)} belongs to --jwt-issuer: name that too")
        elif self.jwks_url is None:
            raise click.UsageError("--jwt-issuer needs --jwks-url: where its keys are")
        elif self.jwt_audience is None and self.public_url is None:
            raise click.UsageError(
                "--jwt-issuer needs --jwt-audience: the public URL of this server"
            )

    @property
    def authenticated(self) -> bool:
        """Whether somebody has to show a token."""
        # Named, not filled in: an empty variable of a shell must not open the server.
        return any(self._names(name) for name in _SOURCES)

    def authenticator(self) -> BearerAuthenticator | None:
        """Make what tells who a request comes from. Raises ConfigurationError.

        Reads the file or the variable of the tokens; the keys of an issuer are fetched later.
        """
        if not self.authenticated:
            return None
        from raxol_mcp.server.auth import BearerAuthenticator

        resource = None if self.jwt_issuer is None else self._resource()
        return BearerAuthenticator(
            self._verifier(resource),
            resource=resource,
            required_scopes=names_in(self.required_scopes),
        )

    def refusals(self, server: Server) -> list[str]:
        """Say why `serve` would not put this server on the network, a sentence each.

        What only trying shows (a port that is taken, an issuer that cannot be reached) is not
        among them.
        """
        from raxol_mcp.transports.http.guards import Guards
        from raxol_mcp.transports.http.serving import check_binding

        def binding() -> None:
            check_binding(
                self.host or HOST,
                authenticated=self.authenticated or self.allow_unauthenticated,
                named=bool(self.allowed_hosts),
            )

        checks: tuple[Callable[[], object], ...] = (
            binding,
            self.authenticator,
            lambda: Guards(self.hosts, self.origins),
            lambda: _gate(server),
        )
        return [sentence for check in checks if (sentence := _refusal(check)) is not None]

    @property
    def hosts(self) -> list[str] | None:
        """The names of this server, where any were given."""
        return names_in(self.allowed_hosts) if self.allowed_hosts else None

    @property
    def origins(self) -> list[str] | None:
        """The origins of pages that are let in, where any were given."""
        return names_in(self.allowed_origins) if self.allowed_origins else None

    def _names(self, option: str) -> bool:
        value = getattr(self, option)
        return value is not None and value is not False and value != ()

    def _verifier(self, resource: ProtectedResource | None) -> TokenVerifier:
        from raxol_mcp.server.static_tokens import StaticTokens

        if self.tokens is not None:
            return StaticTokens.from_file(self.tokens)
        if self.tokens_env is not None:
            return StaticTokens.from_environment(self.tokens_env)
        from raxol_mcp.server.auth_jwt import JwtVerifier

        assert self.jwt_issuer is not None, "one of the three was named"
        assert resource is not None, "made for an issuer"
        return JwtVerifier(
            issuer=self.jwt_issuer,
            audience=self.jwt_audience or resource,
            jwks_url=self.jwks_url,
        )

    def _resource(self) -> ProtectedResource:
        """Name this server for clients that look for tokens (RFC 9728)."""
        from raxol_mcp.server.protected_resource import ProtectedResource

        assert self.jwt_issuer is not None, "asked for an issuer alone"
        try:
            return ProtectedResource(
                self.public_url or self.jwt_audience or "",
                authorization_servers=[self.jwt_issuer],
                scopes_supported=names_in(self.required_scopes),
            )
        except ConfigurationError as error:
            if self.public_url is not None:
                raise
            raise ConfigurationError(
                f"--jwt-audience is not the public URL of this server, so name that with "
                f"--public-url ({error})"
            ) from None


def network_options(function: Callable[..., object]) -> Callable[..., object]:
    """Give a command the options; `function` is called with them as its argument `network`."""

    @wraps(function)
    def command(**given: object) -> object:
        named = {name: given.pop(name) for name in Network.__struct_fields__}
        return function(**given, network=Network(**named))  # type: ignore[arg-type]  # click's types

    decorated: Callable[..., object] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: Final = (
    click.option("--http", is_flag=True, help="Serve over HTTP, until a signal comes."),
    click.option("--host", metavar="ADDRESS", help=f"Where to listen. [{HOST}]"),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help=f"Where to listen; 0 takes a free one. [{PORT}]",
    ),
    click.option("--path", metavar="PATH", help=f"The path of the endpoint. [{PATH}]"),
    click.option(
        "--allowed-host",
        "allowed_hosts",
        multiple=True,
        metavar="NAME,...",
        help="Names by which clients call this server, with a port or for every port. May be "
        "repeated. Left out: this machine's own.",
    ),
    click.option(
        "--allowed-origin",
        "allowed_origins",
        multiple=True,
        metavar="ORIGIN,...",
        help="Web pages that may call this server. May be repeated.",
    ),
    click.option(
        "--allow-unauthenticated",
        is_flag=True,
        help="Let anybody in who can reach an address that is not this machine's alone.",
    ),
    click.option("--tokens", metavar="FILE", help="Take the bearer tokens that this file lists."),
    click.option(
        "--tokens-env", metavar="NAME", help="Take those that this environment variable lists."
    ),
    click.option("--jwt-issuer", metavar="URL", help="Take the access tokens of this issuer."),
    click.option("--jwks-url", metavar="URL", help="Where the keys of that issuer are."),
    click.option(
        "--jwt-audience",
        metavar="URL",
        help="Whom its tokens must be for: the public URL of this server.",
    ),
    click.option(
        "--public-url", metavar="URL", help="That URL, where tokens name the server otherwise."
    ),
    click.option(
        "--required-scope",
        "required_scopes",
        multiple=True,
        metavar="SCOPE,...",
        help="A scope that every token must have. May be repeated.",
    ),
)


def _gate(server: Server) -> None:
    """Refuse a server that nobody guarded, in the words of a command line."""
    from raxol_mcp.server.deployment import (
        ENVIRONMENT_VARIABLE,
        authorization_required,
        environment,
    )

    if not authorization_required():
        return
    missing = []
    if not server.authorization_configured():
        missing.append("call tools (name --allow-tools, --allow-all-tools or --authorizer)")
    if not server.read_authorization_configured():
        missing.append("read (name --allow-reads or --read-authorizer)")
    if missing:
        raise ConfigurationError(
            f"{server.name} is not served over a network in {environment()}, because nobody has "
            f"decided who may {' and who may '.join(missing)}; {ENVIRONMENT_VARIABLE}=dev is for "
            "a machine where that does not matter"
        )


def _refusal(check: Callable[[], object]) -> str | None:
    try:
        check()
    except ConfigurationError as error:
        return str(error)
    return None


def _options(names: Iterable[str]) -> str:
    spelt = {"allowed_hosts": "--allowed-host", "allowed_origins": "--allowed-origin"}
    spelt["required_scopes"] = "--required-scope"
    return " and ".join(spelt.get(name, "--" + name.replace("_", "-")) for name in names)
