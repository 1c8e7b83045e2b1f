"""Who may call what: the authorizer contract, its builders, and asking one safely.

Not the enforcement: what is put to an authorizer, and when, is decided elsewhere.

An authorizer is `(name, arguments, context) -> Allow | Deny | AskHuman | RequireScopes`, sync or
async. Whatever else it does, raising included, is a denial that reaches our log and not the caller.
A sync authorizer runs in a thread, because it may look something up; one that only computes is
marked with `nonblocking` and runs at once, on the loop.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypedDict, TypeVar, final

import msgspec

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.arguments import copied
from raxol_mcp.server.callbacks import is_async

__all__ = [
    "ALLOW",
    "Allow",
    "AskHuman",
    "AuthorizationContext",
    "Authorizer",
    "Decision",
    "Deny",
    "RequireScopes",
    "RunInThread",
    "allow",
    "allow_all",
    "allowlist",
    "ask",
    "decide",
    "decide_now",
    "deny",
    "deny_all",
    "nonblocking",
    "require_scopes",
]

_logger = logging.getLogger("raxol_mcp.authorizer")

AUTHORIZER_FAILED: Final = "authorizer_failed"
CONTRACT_VIOLATION: Final = "authorizer_contract_violation"
NOT_ALLOWLISTED: Final = "not_allowlisted"
INSUFFICIENT_SCOPE: Final = "insufficient_scope"


@final
class Allow:
    """The call may run. There is one: `ALLOW`."""

    __slots__ = ()

    def __new__(cls) -> Allow:
        """Return the only one."""
        return ALLOW

    def __repr__(self) -> str:
        return "Allow()"


ALLOW: Final[Allow] = object.__new__(Allow)


@final
class Deny(msgspec.Struct, frozen=True):
    """The call may not run. `reason` reaches the caller word for word as the `detail`."""

    reason: str = "denied"


@final
class AskHuman(msgspec.Struct, frozen=True):
    """The human at the client decides. `prompt` is the question put to them."""

    prompt: str


@final
class RequireScopes(msgspec.Struct, frozen=True):
    """The call may run if the token that it came with has all of these scopes.

    Where it has not, the call is denied, and over HTTP the client is told to come back with a token
    that has (status 403; MCP 2026-07-28 basic/authorization §Scope Challenge Handling). Where there
    are no tokens it is denied.
    """

    scopes: tuple[str, ...]


Decision: TypeAlias = Allow | Deny | AskHuman | RequireScopes


class AuthorizationContext(TypedDict):
    """Where a call comes from, as this server knows it; nothing the client asserts may be added.

    `connection` is the id of the connection, `transport` the transport declared at start,
    `principal` who the transport authenticated (None without authentication).
    """

    connection: object
    transport: str
    principal: str | None


Authorizer: TypeAlias = Callable[
    [str, Mapping[str, object], AuthorizationContext], Decision | Awaitable[Decision]
]
RunInThread: TypeAlias = Callable[[Callable[[], object]], Awaitable[object]]

_F = TypeVar("_F", bound=Callable[..., object])


def allow() -> Allow:
    """Decide yes."""
    return ALLOW


def deny(reason: str = "denied") -> Deny:
    """Decide no. The caller is shown `reason`."""
    return Deny(reason)


def ask(prompt: str) -> AskHuman:
    """Leave the decision to the human at the client, who is shown `prompt`."""
    return AskHuman(prompt)


def require_scopes(*scopes: str) -> RequireScopes:
    """Decide by the scopes of the caller's token: name all that the operation needs.

    Raises `ConfigurationError` for none, and for what is not a scope (RFC 6749 §3.3).
    """
    from raxol_mcp.server.protected_resource import checked_scopes  # only where there are tokens

    if not scopes:
        raise ConfigurationError("require_scopes needs a scope")
    return RequireScopes(checked_scopes(scopes, what="require_scopes"))


def nonblocking(authorizer: _F) -> _F:
    """Mark a sync authorizer as cheap, so that it runs on the loop instead of in a thread.

    It must not wait for anything. Raises `ConfigurationError` for an async one (those run on the
    loop anyway) and for an object that takes no attributes, such as a bound method: mark the
    function in the class.
    """
    if is_async(authorizer):
        raise ConfigurationError("an async authorizer is not marked nonblocking: it never blocks")
    try:
        authorizer.nonblocking = True  # type: ignore[attr-defined]  # a mark on a function
    except AttributeError:
        raise ConfigurationError(
            f"{authorizer!r} takes no mark: decorate the function itself with @nonblocking"
        ) from None
    return authorizer


def allow_all() -> Authorizer:
    """Build the authorizer that allows everything: the explicit way to opt out."""

    @nonblocking
    def allow_all(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        return ALLOW

    return allow_all


def deny_all(reason: str = "denied") -> Authorizer:
    """Build the authorizer that denies everything with `reason`."""
    if not _is_text(reason):
        raise ConfigurationError(f"deny_all needs a reason in words, not {reason!r}")
    denied = Deny(reason)

    @nonblocking
    def deny_all(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        return denied

    return deny_all


def allowlist(names: Iterable[str]) -> Authorizer:
    """Build the authorizer that allows these names, exactly as spelt, and denies every other.

    The names are copied now. Raises `ConfigurationError` for a lone string, which would be an
    allowlist of its letters, and for anything in `names` that is no string.
    """
    if isinstance(names, str):
        raise ConfigurationError(f"allowlist needs a list of names, not the string {names!r}")
    allowed = frozenset(names)
    for name in allowed:
        if not isinstance(name, str):
            raise ConfigurationError(f"allowlist needs names that are strings, not {name!r}")
    denied = Deny(NOT_ALLOWLISTED)

    @nonblocking
    def allowlist(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        return ALLOW if name in allowed else denied

    return allowlist


def decide_now(
    authorizer: Authorizer | None,
    name: str,
    arguments: Mapping[str, object],
    context: AuthorizationContext,
) -> Decision | None:
    """Ask a nonblocking authorizer; None when it is not one and `decide` must be awaited.

    The authorizer has not been called when None comes back. No authorizer allows: the refusal of
    sensitive tools without one is a check of its own. Never raises for a mistake of the user's.
    """
    if authorizer is None:
        return ALLOW
    if getattr(authorizer, "nonblocking", False) is not True:
        return None
    return _checked(_called(authorizer, name, arguments, context), name)


async def decide(
    authorizer: Authorizer | None,
    name: str,
    arguments: Mapping[str, object],
    context: AuthorizationContext,
    run_in_thread: RunInThread,
) -> Decision:
    """Ask any authorizer. Never raises for a mistake of the user's; the answer is then a denial.

    `run_in_thread(fn)` runs `fn()` in a thread and returns what it returned; it is used for sync
    authorizers that are not marked `nonblocking`. A `CancelledError` that ends this very task
    passes through; one that the authorizer itself came up with is its failure.
    """
    decision = decide_now(authorizer, name, arguments, context)
    if decision is not None:
        return decision
    assert authorizer is not None, "decide_now answers when there is no authorizer"
    try:
        if is_async(authorizer):
            result = _called(authorizer, name, arguments, context)
        else:
            result = await run_in_thread(partial(_called, authorizer, name, arguments, context))
        if inspect.isawaitable(result):
            result = await result
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _failed(name, error)
    except (Exception, SystemExit) as error:
        return _failed(name, error)
    return _checked(result, name)


def _called(
    authorizer: Authorizer,
    name: str,
    arguments: Mapping[str, object],
    context: AuthorizationContext,
) -> object:
    """Call the authorizer; return what it returned, or the denial when it raised.

    Caught where it is called: a thread cannot hand a StopIteration to a future, and nothing is
    awaited here, so a CancelledError is the authorizer's own. SystemExit would end the server
    for every client.
    """
    try:
        return authorizer(name, copied(arguments), context)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return _failed(name, error)


def _failed(name: str, error: BaseException) -> Deny:
    _logger.error("the authorizer failed for %r: denied", name, exc_info=error)
    return Deny(AUTHORIZER_FAILED)


def _checked(result: object, name: str) -> Decision:
    """Return `result` when it is a decision, else the denial.

    By exact type: a value that only behaves like a decision is not one.
    """
    if result is ALLOW:
        return ALLOW
    if type(result) is Deny and _is_text(result.reason):
        return result
    if type(result) is AskHuman and _is_text(result.prompt):
        return result
    if type(result) is RequireScopes and _are_scopes(result.scopes):
        return result
    if inspect.iscoroutine(result):
        result.close()  # a nonblocking authorizer that is async after all: never awaited
    # The value may hold what the caller sent, so the log gets its type alone.
    _logger.error(
        "the authorizer must return allow(), deny(reason), ask(prompt) or require_scopes(...) with "
        "text that JSON can carry, but for %r it returned a %s: denied",
        name,
        type(result).__qualname__,
        stack_info=True,
    )
    return Deny(CONTRACT_VIOLATION)


def _are_scopes(scopes: object) -> bool:
    return isinstance(scopes, tuple) and bool(scopes) and all(map(_is_text, scopes))


def _is_text(value: object) -> bool:
    """Say whether this is a string that JSON can carry: a lone surrogate cannot be encoded."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
