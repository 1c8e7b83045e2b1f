"""Which server a client is for, and within which bounds it talks to it. Checked, never acted on.

A spec names a program (`command`) or an address (`url`), never both: which of the two would win
is not something to be guessed. Everything in it is a literal: no variable is expanded, no shell
sees the command, no file is read. It holds credentials, so whatever renders it masks them
(`raxol_mcp.client.redaction`).

What the URL says is judged when the client connects: an address that is refused or unreachable
leaves a client that is closed, knows the reason and tries again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

from raxol_mcp.client.redaction import Secrets, described
from raxol_mcp.client.spec_checks import READERS, WrongOption, judge_target, unknown_options
from raxol_mcp.errors import InvalidSpec

__all__ = ["ClientSpec", "Pairs"]

Pairs: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

_MIB: Final = 1024 * 1024


class ClientSpec:
    """One server and how to talk to it. Immutable; `repr` and `str` show no secret.

    Raises `InvalidSpec`, one sentence on what to change, for what cannot be meant: nothing has
    been started then. Durations are seconds, finite and above 0 unless said otherwise.

    Which server:

    * `name`: what people and namespaced tools call it, 1 to 128 printable characters. Names need
      not be unique in a process.
    * `command`: the program to start, found on PATH or named by its path. Exactly one of
      `command` and `url` is given.
    * `args`: its arguments, passed on byte for byte; none. No shell reads them.
    * `env`: variables for the program, a mapping or pairs; they win over inherited ones. None.
    * `cwd`: the directory the program starts in; that of this process.
    * `inherit_env`: whether the program gets the variables of this process besides; True.
    * `drop_env`: names of variables that it does not inherit; none.
    * `url`: the address of the server's MCP endpoint, over Streamable HTTP.
    * `headers`: HTTP headers for every request, a mapping or pairs of literals; none. Those that
      the protocol sets itself cannot be replaced.
    * `allow_private`: whether `url` may lead to this machine or a private network, and use plain
      http to this machine; False, because a name that resolves to a private address is how a
      public server reaches what stands behind a firewall.

    How it is spoken to:

    * `era`: "handshake" or "stateless" instead of asking the server which it speaks; None.
    * `era_ttl`: how long this process remembers what the server spoke; 900.0, 0 for never.
    * `concurrency`: "stateless", "pooled" or "serialized" (one request at a time); None leaves it
      to the transport and the era.
    * `pool_size`: requests in flight at once, at least 1, unless serialized; 8.
    * `queue_limit`: calls that may wait for their turn, 0 or more; 8. One more is `Busy` at once.
    * `metered`: whether every tool of the server costs something; None: if `prices` names any.
    * `prices`: what tools cost, `{tool: positive integer}`; none. A priced tool is called with a
      reservation or not at all. Another value than a positive integer makes that tool's price
      unknown, so that it cannot be called.

    How long it may take, and how much it may send:

    * `call_timeout`: for one request, from its admission, so the wait in the queue counts; 30.0.
    * `init_timeout`: to open a connection, and again for the handshake on it; 60.0.
    * `probe_timeout`: for the answer to the question which era the server speaks; 5.0.
    * `answer_timeout`: for a handler of this side to answer the server; 300.0.
    * `connect_timeout`: for each address of `url` that is dialled; 5.0.
    * `chunk_timeout`: how long a response may be silent while its body is due; 10.0. An event
      stream may be silent longer: `call_timeout` bounds it.
    * `reconnect`: before the first attempt to connect again; 1.0. Doubles up to 60.
    * `fail_fast`: whether who waits for readiness is told of the first failure; False.
    * `max_message_bytes`: the longest message that is taken; 16 MiB.
    """

    __slots__ = (
        "allow_private",
        "answer_timeout",
        "args",
        "call_timeout",
        "chunk_timeout",
        "command",
        "concurrency",
        "connect_timeout",
        "cwd",
        "drop_env",
        "env",
        "era",
        "era_ttl",
        "fail_fast",
        "headers",
        "inherit_env",
        "init_timeout",
        "max_message_bytes",
        "metered",
        "name",
        "pool_size",
        "prices",
        "probe_timeout",
        "queue_limit",
        "reconnect",
        "url",
    )

    name: str
    command: str | None
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str | None
    inherit_env: bool
    drop_env: tuple[str, ...]
    url: str | None
    headers: tuple[tuple[str, str], ...]
    allow_private: bool
    era: str | None
    era_ttl: float
    concurrency: str | None
    pool_size: int
    queue_limit: int
    metered: bool | None
    prices: Mapping[str, object]
    call_timeout: float
    init_timeout: float
    probe_timeout: float
    answer_timeout: float
    connect_timeout: float
    chunk_timeout: float
    reconnect: float
    fail_fast: bool
    max_message_bytes: int

    def __init__(
        self,
        name: str,
        *,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Pairs | None = None,
        cwd: str | os.PathLike[str] | None = None,
        inherit_env: bool = True,
        drop_env: Sequence[str] = (),
        url: str | None = None,
        headers: Pairs | None = None,
        allow_private: bool = False,
        era: str | None = None,
        era_ttl: float = 900.0,
        concurrency: str | None = None,
        pool_size: int = 8,
        queue_limit: int = 8,
        metered: bool | None = None,
        prices: Mapping[str, object] | None = None,
        call_timeout: float = 30.0,
        init_timeout: float = 60.0,
        probe_timeout: float = 5.0,
        answer_timeout: float = 300.0,
        connect_timeout: float = 5.0,
        chunk_timeout: float = 10.0,
        reconnect: float = 1.0,
        fail_fast: bool = False,
        max_message_bytes: int = 16 * _MIB,
    ) -> None:
        given = dict(locals())  # the arguments by name: nothing else is defined yet
        del given["self"]
        self._take(given)

    @classmethod
    def of(
        cls, options: ClientSpec | Mapping[str, object] | Iterable[tuple[str, object]]
    ) -> ClientSpec:
        """Make a spec from its options by name, a mapping or pairs; a spec is given back.

        Raises `InvalidSpec`, also for options that do not exist: a misspelt bound bounds nothing.
        """
        if isinstance(options, cls):
            return options
        try:
            given = dict(options)  # type: ignore[arg-type]  # whatever it is, `dict` says no
        except (TypeError, ValueError):
            raise InvalidSpec("a spec is a mapping of options, such as name and command") from None
        unknown = [key for key in given if key not in READERS]
        if unknown:
            raise InvalidSpec(f"{unknown_options(unknown)}; given: {described(given)}")
        spec = cls.__new__(cls)
        spec._take({**_DEFAULTS, "name": None, **given})
        return spec

    def _take(self, given: dict[str, object]) -> None:
        said = _said(given)
        try:
            judge_target(said)
            for name, read in READERS.items():
                object.__setattr__(self, name, read(name, given[name]))
        except WrongOption as wrong:
            raise InvalidSpec(f"{wrong}; given: {described(said)}") from None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a ClientSpec does not change: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a ClientSpec does not change: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClientSpec):
            return NotImplemented
        return self._options() == other._options()

    def __hash__(self) -> int:
        return hash((self.name, self.command, self.args, self.url))

    def __reduce__(self) -> tuple[object, ...]:
        return ClientSpec.of, ({**self._options(), "prices": dict(self.prices)},)

    def __repr__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Render what is not as by default on one line, without a secret."""
        return described(_said(self._options()))

    @property
    def kind(self) -> str:
        """The transport: "stdio" or "http"."""
        return "http" if self.command is None else "stdio"

    def secrets(self) -> Secrets:
        """Give what must not be in a text about this server, to be masked."""
        return Secrets(headers=self.headers, env=self.env, args=self.args, url=self.url)

    def _options(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in READERS}


_DEFAULTS: Final[Mapping[str, object]] = ClientSpec.__init__.__kwdefaults__ or {}
_CONTAINERS: Final = frozenset({"args", "drop_env", "env", "headers", "prices"})


def _said(options: Mapping[str, object]) -> dict[str, object]:
    """Give the options that are not as by default. An empty list says as little as None."""
    return {name: value for name, value in options.items() if not _is_default(name, value)}


def _is_default(name: str, value: object) -> bool:
    if name in _CONTAINERS:
        return value is None or (isinstance(value, list | tuple | Mapping) and not value)
    default = _DEFAULTS.get(name)
    return value is default or (type(value) is type(default) and value == default)
