"""server/auth.py: a bearer token becomes a principal or a challenge, and is shown to nobody."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_mcp.core.authentication import Authenticated, Challenge
from raxol_mcp.errors import ConfigurationError, NotReady
from raxol_mcp.server.auth import (
    MAX_TOKEN_BYTES,
    BearerAuthenticator,
    Principal,
    TokenVerifier,
    bearer_challenge,
)
from raxol_mcp.server.protected_resource import ProtectedResource
from raxol_mcp.testing.virtual_loop import run_virtual
from raxol_mcp.transports.base import Authenticator

SECRET = "s3cret-b6_8kJ2mQx0v5cT1yR7nLw"
RESOURCE = ProtectedResource(
    "https://mcp.example.com/mcp", authorization_servers=["https://login.example.com"]
)
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
ALICE = Principal("alice", "https://login.example.com", "editor", frozenset({"files"}))


class Verifier:
    """Knows one token; does what it was told with it."""

    def __init__(self, answer: object = ALICE) -> None:
        self.answer = answer
        self.seen: list[str] = []

    async def verify(self, token: str) -> Principal | None:
        self.seen.append(token)
        if token != SECRET:
            return None
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]  # whatever a user's verifier returns


class Waiting:
    """Never comes back."""

    async def verify(self, token: str) -> Principal | None:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody ends the wait")


def bearer(token: str = SECRET) -> list[bytes]:
    return [b"Bearer " + token.encode()]


def judged(authenticator: BearerAuthenticator, *authorization: bytes) -> Authenticated | Challenge:
    return asyncio.run(authenticator.authenticate(list(authorization)))


def authenticator(
    verifier: TokenVerifier | None = None, *, required: tuple[str, ...] = ()
) -> BearerAuthenticator:
    return BearerAuthenticator(verifier or Verifier(), resource=RESOURCE, required_scopes=required)


# -- principals


def test_the_name_of_a_principal_is_issuer_and_subject() -> None:
    """ours: a subject is unique at its issuer alone (RFC 7519 §4.1.2)."""
    assert Principal("42", "https://a").id == "https://a|42"
    assert Principal("a|b%", "c%7C|").id == "c%257C%7C|a%7Cb%25"


PARTS = st.text(st.sampled_from("a|%7C25"), max_size=6)


@given(*[PARTS.filter(bool), PARTS] * 2)
@example("a|b", "", "b", "|a")
@example("b", "a|", "|b", "a")
def test_no_two_principals_share_a_name(s1: str, i1: str, s2: str, i2: str) -> None:
    """ours: else one of them could use the sessions and quotas of the other."""
    assert (Principal(s1, i1).id == Principal(s2, i2).id) == ((s1, i1) == (s2, i2))


def test_client_and_scopes_are_no_part_of_the_name() -> None:
    assert Principal("a", "i", "c", frozenset({"s"})).id == Principal("a", "i").id


@pytest.mark.parametrize(("subject", "issuer"), [("", "i"), ("\ud800", "i"), ("a", "\udfff")])
def test_a_principal_has_a_name_that_a_message_can_carry(subject: str, issuer: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # UnicodeEncodeError is one
        Principal(subject, issuer)


# -- who gets in


def test_it_is_what_a_transport_wants() -> None:
    wanted: Authenticator = authenticator()
    assert wanted.metadata() == RESOURCE.metadata()
    assert BearerAuthenticator(Verifier()).metadata() is None


@pytest.mark.parametrize(
    "header",
    [
        f"Bearer {SECRET}",
        f"bearer {SECRET}",
        f"BEARER {SECRET}",
        f"Bearer    {SECRET}",
        f" \tBearer {SECRET}\t ",
    ],
)
def test_a_valid_token_names_its_principal(header: str) -> None:
    """RFC 6750 §2.1; RFC 9110 §11.1: the scheme has no case."""
    expected = Authenticated("https://login.example.com|alice", frozenset({"files"}))
    assert judged(authenticator(), header.encode()) == expected


@pytest.mark.parametrize("header", [None, b"", b"Basic YTpi", b"DPoP abc", b"Bearerx a", b"\xff"])
def test_without_a_token_a_challenge_says_where_to_get_one(header: bytes | None) -> None:
    """RFC 6750 §3: no error code without an attempt; RFC 9728 §5.1."""
    expected = Challenge(401, f'Bearer resource_metadata="{METADATA}"', "A token is needed")
    assert judged(authenticator(), *([] if header is None else [header])) == expected


@pytest.mark.parametrize(
    "header",
    [
        b"Bearer",
        b"Bearer ",
        b"bearer\t" + SECRET.encode(),
        b"Bearer a b",
        b"Bearer a,b",
        b"Bearer =",
        b"Bearer a=b",
        b'Bearer "a"',
        b"Bearer a\r\nb",
        b"Bearer a\n",
        b"Bearer \xc3\xa9",
        b"Bearer token=" + SECRET.encode() + b", Basic YTpi",
    ],
)
def test_a_malformed_token_is_a_bad_request(header: bytes) -> None:
    """RFC 6750 §3.1: invalid_request; MCP 2026-07-28 basic/authorization §Error Handling: 400."""
    verifier = Verifier()
    found = judged(authenticator(verifier), header)
    assert isinstance(found, Challenge)
    assert found.status == 400
    assert (found.www_authenticate or "").startswith('Bearer error="invalid_request"')
    assert verifier.seen == []


def test_two_headers_are_a_bad_request_even_when_they_agree() -> None:
    """ours: two readers would take different ones."""
    verifier = Verifier()
    for second in (bearer()[0], b"Basic YTpi", b""):
        found = judged(authenticator(verifier), *bearer(), second)
        assert isinstance(found, Challenge)
        assert found.status == 400
    assert verifier.seen == []


def test_a_token_that_is_not_valid_is_one() -> None:
    """RFC 6750 §3.1: invalid_token; https://nvd.nist.gov/vuln/detail/CVE-2025-69196."""
    assert judged(authenticator(required=("files",)), *bearer("other")) == Challenge(
        401,
        'Bearer error="invalid_token", error_description="The token is not valid here", '
        f'scope="files", resource_metadata="{METADATA}"',
        "The token is not valid here",
    )


def test_a_token_has_a_largest_size() -> None:
    verifier = Verifier()
    longest = "a" * MAX_TOKEN_BYTES
    for token, seen in ((longest, 1), (longest + "a", 1), ("a" * 1_000_000, 1)):
        found = judged(authenticator(verifier), *bearer(token))
        assert isinstance(found, Challenge)
        assert (found.status, len(verifier.seen)) == (401, seen)


# -- scopes


def test_all_scopes_that_are_needed_are_named_at_once() -> None:
    """MCP 2026-07-28 basic/authorization §Scope Challenge Handling."""
    challenge = Challenge(
        403,
        'Bearer error="insufficient_scope", error_description="The token lacks a scope", '
        f'scope="write files", resource_metadata="{METADATA}"',
        "The token lacks a scope",
    )
    assert judged(authenticator(required=("write", "files")), *bearer()) == challenge
    assert authenticator().insufficient_scope(["write", "files"]) == challenge


def test_the_needed_scopes_are_offered_before_a_token_is_asked_for() -> None:
    """MCP 2026-07-28 basic/authorization §Scope Selection Strategy."""
    found = judged(authenticator(required=("files",)))
    assert isinstance(found, Challenge)
    assert found.www_authenticate == f'Bearer scope="files", resource_metadata="{METADATA}"'


def test_a_broader_scope_contains_narrower_ones_to_any_depth() -> None:
    """MCP 2026-07-28 basic/authorization §Step-Up Authorization Flow: scope hierarchies."""
    implied = {"files": ["write", "read"], "write": ["append"], "append": ["files"]}
    found = judged(
        BearerAuthenticator(Verifier(), required_scopes=["append"], implied_scopes=implied),
        *bearer(),
    )
    everything = frozenset({"files", "write", "read", "append"})
    assert found == Authenticated("https://login.example.com|alice", everything)


@pytest.mark.parametrize("scopes", [["a b"], ["offline_access"], "files"])
def test_scopes_that_are_none_are_refused_at_once(scopes: list[str]) -> None:
    with pytest.raises(ConfigurationError):
        BearerAuthenticator(Verifier(), required_scopes=scopes)
    with pytest.raises(ConfigurationError):
        BearerAuthenticator(Verifier(), implied_scopes={"x": scopes})
    with pytest.raises(ConfigurationError):
        authenticator().insufficient_scope(scopes)


# -- verifiers that fail


@pytest.mark.parametrize(
    "answer", [RuntimeError(f"cannot read {SECRET}"), ValueError(), True, "alice", object()]
)
def test_a_verifier_that_fails_lets_nobody_in(
    caplog: pytest.LogCaptureFixture, answer: object
) -> None:
    """ours: fails closed; "not now" is 503, so that a client keeps its token."""
    caplog.set_level(logging.DEBUG, "raxol_mcp")
    assert judged(authenticator(Verifier(answer)), *bearer()) == Challenge(
        503, None, "Tokens cannot be checked now"
    )
    logged = [(record.name, record.levelno) for record in caplog.records]
    assert ("raxol_mcp.auth", logging.ERROR) in logged
    assert SECRET not in caplog.text


def test_a_verifier_may_say_not_now(caplog: pytest.LogCaptureFixture) -> None:
    """ours: an issuer that is down must not fill the log, a line for each request."""
    caplog.set_level(logging.DEBUG, "raxol_mcp")
    challenge = judged(authenticator(Verifier(NotReady("the issuer is down"))), *bearer())
    assert challenge == Challenge(503, None, "Tokens cannot be checked now")
    assert "raxol_mcp.auth" not in [record.name for record in caplog.records]


def test_the_log_shows_where_a_verifier_failed(caplog: pytest.LogCaptureFixture) -> None:
    judged(authenticator(Verifier(RuntimeError(SECRET))), *bearer())
    assert "RuntimeError" in caplog.text
    assert "raise self.answer" in caplog.text


def test_a_verifier_that_hangs_is_given_up() -> None:
    """ours: every wait has a bound."""

    async def waits() -> tuple[object, float]:
        found = await authenticator(Waiting()).authenticate(bearer())
        return found, asyncio.get_running_loop().time()

    challenge = Challenge(503, None, "Tokens cannot be checked now")
    assert run_virtual(waits) == (challenge, 30.0)


def test_a_verifier_that_bounds_itself_runs_without_a_timer() -> None:
    """ours: the timer would cost more than the rest."""

    async def waits() -> tuple[object, float]:
        class Bounded:
            bounded = True

            async def verify(self, token: str) -> Principal | None:
                await asyncio.sleep(40.0)
                return ALICE

        found = await authenticator(Bounded()).authenticate(bearer())
        return found, asyncio.get_running_loop().time()

    expected = Authenticated("https://login.example.com|alice", frozenset({"files"}))
    assert run_virtual(waits) == (expected, 40.0)


def test_a_request_that_goes_away_is_no_failure_of_the_verifier() -> None:
    async def leaves() -> bool:
        task = asyncio.create_task(authenticator(Waiting()).authenticate(bearer()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run_virtual(leaves)


def test_a_wait_without_an_end_is_refused() -> None:
    for timeout in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigurationError, match="timeout"):
            BearerAuthenticator(Verifier(), timeout=timeout)


# -- what is shown


def test_the_token_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """ours: planted secrets must not come out of any end."""
    caplog.set_level(logging.DEBUG)
    cases: list[Callable[[], Awaitable[object]]] = [
        lambda: authenticator(Verifier(None)).authenticate(bearer()),
        lambda: authenticator(required=("no",)).authenticate(bearer()),
        lambda: authenticator(Verifier(OSError(SECRET))).authenticate(bearer()),
        lambda: authenticator().authenticate(bearer() * 2),
        lambda: authenticator().authenticate([bearer()[0] + b" x"]),
        lambda: authenticator().authenticate(bearer()),
    ]

    async def run_all() -> list[object]:
        return [await case() for case in cases]

    shown = repr(asyncio.run(run_all())) + caplog.text + repr(authenticator())
    assert SECRET not in shown


# -- the writer


def test_a_challenge_has_a_parameter() -> None:
    """RFC 6750 §3: one or more."""
    assert bearer_challenge({}) == 'Bearer realm="mcp"'
    assert bearer_challenge({"error": None, "scope": ""}) == 'Bearer realm="mcp"'
    assert bearer_challenge({"a": "1", "b": "x y"}) == 'Bearer a="1", b="x y"'
    found = judged(BearerAuthenticator(Verifier()))
    assert found == Challenge(401, 'Bearer realm="mcp"', "A token is needed")


@pytest.mark.parametrize("value", ['a"b', "a\\b", "a\r\nX: 1", "é", "\x7f", "\t"])
def test_a_value_cannot_leave_its_quotes(value: str) -> None:
    """RFC 6750 §3."""
    with pytest.raises(ConfigurationError, match="plain ASCII"):
        bearer_challenge({"error_description": value})
