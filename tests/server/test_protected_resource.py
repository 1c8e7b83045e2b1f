"""server/protected_resource.py: one public name, and the document that goes with it."""

import json

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.protected_resource import ProtectedResource, checked_scopes

ISSUER = "https://login.example.com"


def document(resource: ProtectedResource) -> object:
    found = resource.metadata()
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize(
    ("url", "canonical", "path"),
    [
        ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp", "/mcp"),
        ("https://MCP.example.com:443/mcp/", "https://mcp.example.com/mcp", "/mcp"),
        ("https://mcp.example.com/", "https://mcp.example.com", ""),
        ("https://h:8443/team/a/mcp", "https://h:8443/team/a/mcp", "/team/a/mcp"),
        ("http://localhost:8000/mcp", "http://localhost:8000/mcp", "/mcp"),
    ],
)
def test_everything_begins_with_the_public_address(url: str, canonical: str, path: str) -> None:
    """RFC 9728 §3.1: the well-known path stands in front of the path of the resource."""
    resource = ProtectedResource(url, authorization_servers=[ISSUER])
    origin = canonical.removesuffix(path)
    well_known = f"/.well-known/oauth-protected-resource{path}"
    assert resource.url == canonical
    assert resource.metadata_url == origin + well_known
    assert resource.metadata() is not None
    assert (resource.metadata() or ("", b""))[0] == well_known
    assert repr(resource) == f"ProtectedResource({canonical!r})"


def test_the_document_names_resource_and_issuers() -> None:
    """RFC 9728 §2; MCP 2026-07-28 basic/authorization: at least one authorization server."""
    resource = ProtectedResource(
        "https://h/mcp",
        authorization_servers=[ISSUER, "https://H2/Tenant/"],
        scopes_supported=["files:read", "files:write", "files:read"],
        name="Files",
        documentation="https://h/docs",
    )
    assert document(resource) == {
        "resource": "https://h/mcp",
        "authorization_servers": [ISSUER, "https://H2/Tenant/"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["files:read", "files:write"],
        "resource_name": "Files",
        "resource_documentation": "https://h/docs",
    }


def test_what_is_not_known_is_left_out() -> None:
    """RFC 9728 §2: members without a value are omitted."""
    resource = ProtectedResource("https://h", authorization_servers=(ISSUER,))
    assert document(resource) == {
        "resource": "https://h",
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }


def test_without_an_issuer_there_is_no_document() -> None:
    """ours: it would lead a client nowhere."""
    resource = ProtectedResource("https://h/mcp")
    assert resource.metadata() is None
    assert resource.metadata_url is None


@pytest.mark.parametrize(
    ("url", "issuers", "what"),
    [
        ("http://h/mcp", [], "the public URL"),
        ("https://h/mcp#a", [], "the public URL"),
        ("https://h/mcp?a=b", [], "the public URL of the server has no query"),
        ("https://h", ["http://login.example.com"], "an authorization server must be https"),
        ("https://h", ["login.example.com"], "an authorization server"),
        ("https://h", ["https://login?a"], "an authorization server has no query"),
        ("https://h", "https://login", "a list of URLs"),
    ],
)
def test_addresses_that_cannot_be_right_are_refused(
    url: str, issuers: list[str], what: str
) -> None:
    """RFC 8707 §2, RFC 8414 §2, RFC 9728 §1.2."""
    with pytest.raises(ConfigurationError, match=what):
        ProtectedResource(url, authorization_servers=issuers)


@pytest.mark.parametrize(
    ("scopes", "problem"),
    [
        ("files:read", "a list of scopes"),
        (["a b"], "'a b' is not a scope"),
        ([""], "'' is not a scope"),
        (['a"b'], "is not a scope"),
        (["a\\b"], "is not a scope"),
        (["é"], "is not a scope"),
        (["a\n"], "is not a scope"),
        (["a", "offline_access"], "offline_access"),
    ],
)
def test_scopes_that_are_none_are_refused(scopes: list[str], problem: str) -> None:
    """RFC 6749 §3.3; MCP 2026-07-28 basic/authorization §Refresh Tokens."""
    with pytest.raises(ConfigurationError, match=problem):
        checked_scopes(scopes, what="scopes")
    with pytest.raises(ConfigurationError, match=problem):
        ProtectedResource("https://h", scopes_supported=scopes)
