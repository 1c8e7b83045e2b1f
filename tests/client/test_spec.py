"""A client's spec: one target, checked options, and no secret in anything that is shown."""

import copy
import pickle
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.errors import ConfigurationError, InvalidSpec

URL = "https://mcp.example.com/mcp"


def refusal(options: Mapping[str, object]) -> str:
    """Return the sentence that refuses a spec."""
    with pytest.raises(InvalidSpec) as caught:
        ClientSpec.of(options)
    return str(caught.value)


def test_a_command_makes_a_stdio_spec_with_the_documented_defaults() -> None:
    spec = ClientSpec("files", command="npx")
    assert spec.kind == "stdio"
    assert (spec.name, spec.command, spec.args, spec.env, spec.cwd) == (
        "files",
        "npx",
        (),
        (),
        None,
    )
    assert (spec.inherit_env, spec.drop_env) == (True, ())
    assert (spec.url, spec.headers, spec.allow_private) == (None, (), False)
    assert (spec.era, spec.era_ttl, spec.concurrency) == (None, 900.0, None)
    assert (spec.pool_size, spec.queue_limit) == (8, 8)
    assert (spec.metered, dict(spec.prices)) == (None, {})
    assert (spec.call_timeout, spec.init_timeout, spec.probe_timeout) == (30.0, 60.0, 5.0)
    assert (spec.answer_timeout, spec.connect_timeout, spec.chunk_timeout) == (300.0, 5.0, 10.0)
    assert (spec.reconnect, spec.fail_fast) == (1.0, False)
    assert spec.max_message_bytes == 16 * 1024 * 1024


def test_a_url_makes_an_http_spec_whose_content_is_not_judged_yet() -> None:
    """client-behaviour 2.1: what the URL says is a failure to connect, not a refused spec."""
    for url in (URL, "http://10.0.0.1/", "ftp://x", "junk"):
        assert (ClientSpec("a", url=url).kind, ClientSpec("a", url=url).url) == ("http", url)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"command": "x", "url": URL}, "command and url are both given"),
        ({"command": "", "url": URL}, "command and url are both given"),
        ({"command": 7, "url": URL}, "command and url are both given"),
        ({}, "neither command nor url is given"),
        ({"command": None, "url": None}, "neither command nor url is given"),
        ({"command": ""}, "command must be a text that is not empty"),
        ({"command": "  "}, "command must be a text that is not empty"),
        ({"command": ["npx"]}, "command must be a text that is not empty"),
        ({"url": ""}, "url must be a text that is not empty"),
        ({"url": 7}, "url must be a text that is not empty"),
    ],
)
def test_exactly_one_target_is_given(options: dict[str, object], said: str) -> None:
    """The client specification: command XOR url, never a silent preference."""
    assert refusal({"name": "a", **options}).startswith(said)
    pairs: Iterable[tuple[str, object]] = [("name", "a"), *options.items()]
    with pytest.raises(InvalidSpec, match=said):
        ClientSpec.of(pairs)


def test_without_a_name_a_spec_is_refused_and_without_a_target_that_is_said_first() -> None:
    assert refusal({"url": URL}).startswith("name is missing")
    assert refusal({}).startswith("neither command nor url")


def test_an_invalid_spec_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError):
        ClientSpec("a")


@pytest.mark.parametrize("option", ["args", "env", "cwd", "inherit_env", "drop_env"])
def test_what_a_program_needs_is_refused_with_a_url(option: str) -> None:
    values: dict[str, object] = {
        **{"args": ["x"], "env": {"A": "b"}, "cwd": "/tmp"},
        **{"inherit_env": False, "drop_env": ["A"]},
    }
    said = refusal({"name": "a", "url": URL, option: values[option]})
    assert said.startswith(f"{option} has no meaning with url")


@pytest.mark.parametrize("option", ["headers", "chunk_timeout", "connect_timeout", "allow_private"])
def test_what_an_address_needs_is_refused_with_a_command(option: str) -> None:
    values: dict[str, object] = {
        **{"headers": [("a", "b")], "chunk_timeout": 1, "connect_timeout": 2.0},
        "allow_private": True,
    }
    said = refusal({"name": "a", "command": "x", option: values[option]})
    assert said.startswith(f"{option} has no meaning with command")


def test_empty_options_of_the_other_transport_say_nothing() -> None:
    """A configuration file may write `"args": []` beside a url."""
    empty: dict[str, object] = {"args": [], "env": {}, "drop_env": (), "cwd": None}
    assert ClientSpec.of({"name": "a", "url": URL, **empty}) == ClientSpec("a", url=URL)


def test_an_option_that_does_not_exist_is_named_with_the_one_that_was_meant() -> None:
    said = refusal({"name": "a", "url": URL, "header": {"authorization": "Bearer s3cr3t"}})
    assert said.startswith("unknown option 'header' (did you mean headers?)")
    assert "s3cr3t" not in said


def test_many_unknown_options_are_counted() -> None:
    said = refusal({"name": "a", "url": URL, **{f"zz{index}": 1 for index in range(20)}})
    assert said.startswith("unknown options 'zz0', 'zz1'")
    assert "and 12 more" in said


def test_a_key_that_is_no_name_is_not_repeated() -> None:
    said = refusal({"name": "a", "url": URL, "Authorization: Bearer s3cr3t": True})
    assert "s3cr3t" not in said
    with pytest.raises(InvalidSpec, match=r"unknown option \[redacted\]"):
        ClientSpec.of({7: "s3cr3t"})  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize("options", [7, "ab", [1, 2], [("a",)]])
def test_what_is_no_mapping_is_no_spec(options: object) -> None:
    with pytest.raises(InvalidSpec, match="a spec is a mapping of options"):
        ClientSpec.of(options)  # type: ignore[arg-type]  # that is what is tested


def test_a_spec_is_given_back_as_it_is() -> None:
    spec = ClientSpec("a", url=URL)
    assert ClientSpec.of(spec) is spec


def test_mappings_and_pairs_become_pairs_in_their_order() -> None:
    spec = ClientSpec("a", command="x", env={"B": "1", "A": ""}, args=["", "a b", "--x='q'"])
    assert spec.env == (("B", "1"), ("A", ""))
    assert spec.args == ("", "a b", "--x='q'")
    pairs = ClientSpec("a", url=URL, headers=iter([("X-B", "1"), ("X-A", "2")]))
    assert pairs.headers == (("X-B", "1"), ("X-A", "2"))


def test_arguments_are_kept_byte_for_byte() -> None:
    """Nothing is expanded, split or trimmed: there is no shell (SEP-1024)."""
    args = ["; touch pwn", "$(touch pwn)", "`id`", "%PATH%", "a b", "", '--x="q"', "two\nlines"]
    assert ClientSpec("a", command="python3", args=args).args == tuple(args)


def test_a_path_may_name_the_directory() -> None:
    assert ClientSpec("a", command="x", cwd=PurePosixPath("/srv/x")).cwd == "/srv/x"


def test_prices_are_kept_as_they_were_declared() -> None:
    """client-behaviour 12: what is no price makes the tool's price unknown, when it is called."""
    declared: dict[str, object] = {"a": 3, "b": 0, "c": "1", "d": None}
    spec = ClientSpec("a", command="x", prices=declared, metered=False)
    declared["e"] = 1
    assert (dict(spec.prices), spec.metered) == ({"a": 3, "b": 0, "c": "1", "d": None}, False)


def test_a_spec_does_not_change() -> None:
    spec = ClientSpec("a", url=URL)
    with pytest.raises(AttributeError):
        spec.url = "https://other"
    with pytest.raises(AttributeError):
        del spec.url
    assert spec.url == URL


def test_specs_are_compared_by_what_they_say() -> None:
    spec = ClientSpec("a", url=URL, prices={"t": 1})
    assert spec == ClientSpec.of({"name": "a", "url": URL, "prices": {"t": 1}})
    assert hash(spec) == hash(ClientSpec("a", url=URL, prices={"t": 1}))
    assert spec != ClientSpec("a", url=URL)
    assert spec != "a"


def test_a_spec_can_be_copied_and_sent_to_another_process() -> None:
    spec = ClientSpec("a", url=URL, headers={"a": "b"}, prices={"t": 1}, call_timeout=3)
    assert copy.deepcopy(spec) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_what_is_shown_of_a_spec_names_everything_and_tells_nothing() -> None:
    """client-behaviour 2.2: names and counts stay, values do not."""
    spec = ClientSpec(
        "intel",
        url="https://user:pass@mcp.example.com/mcp?key=abcd#frag",
        headers={"authorization": "Bearer abcd", "x-team": "blue"},
        call_timeout=3,
    )
    assert repr(spec) == str(spec) == spec.describe()
    assert repr(spec) == (
        "ClientSpec('intel', url='https://mcp.example.com/mcp?[redacted]', "
        "headers={'authorization': '[redacted]', 'x-team': '[redacted]'}, call_timeout=3.0)"
    )
    assert repr(ClientSpec("a", command="npx", args=["-y", "pkg"], env={"TOKEN": "abcd"})) == (
        "ClientSpec('a', command='npx', args=['[redacted]', '[redacted]'], "
        "env={'TOKEN': '[redacted]'})"
    )


secrets = st.text("abcXYZ019+", min_size=6, max_size=12).map(lambda text: f"S{text}S")
# Anything that a caller may have put in the wrong place.
places = st.sampled_from(
    ["pairs", "mapping", "text", "list", "bare pair", "deep", "pair of three", "name of a header"]
)


def planted(secret: str, place: str) -> object:
    """Return a value with the secret in it, right or wrong."""
    return {
        "pairs": [("authorization", secret)],
        "mapping": {"authorization": secret},
        "text": secret,
        "list": [secret],
        "bare pair": ("authorization", secret),
        "deep": {"authorization": {"bearer": secret}},
        "pair of three": [("authorization", "Bearer", secret)],
        "name of a header": {f"Authorization: {secret}": ""},
    }[place]


def everything_said(options: dict[str, object], error: str) -> str:
    """Return what a spec or its refusal says, and what is left of an error with its secrets."""
    try:
        spec = ClientSpec.of(options)
    except InvalidSpec as refused:
        return f"{refused} {refused!r}"
    return f"{spec} {spec!r} {spec.secrets()!r} {spec.secrets().masked(error)}"


@given(
    secret=secrets,
    option=st.sampled_from(["headers", "env", "args", "header", "token", "url"]),
    place=places,
    target=st.sampled_from(["command", "url", "both", "none"]),
)
def test_no_secret_is_in_anything_a_spec_says(
    secret: str, option: str, place: str, target: str
) -> None:
    """client-behaviour 2.2, check 3; whatever is wrong with the spec."""
    options: dict[str, object] = {"name": "a"}
    if target in ("command", "both"):
        options["command"] = "npx"
    if target in ("url", "both"):
        options["url"] = f"https://u:{secret}@mcp.example.com/mcp?k={secret}&{secret}#{secret}"
    options[option] = planted(secret, place)
    # A name of a variable is no secret: what is in the wrong place there is not shown, no more.
    error = "" if place == "name of a header" else f"error: {secret}!"
    said = everything_said(options, error)
    assert secret not in said
    assert len(said) < 2000
    assert said.isprintable()
