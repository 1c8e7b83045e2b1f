"""errors.py: the tree is as it is drawn, and a reason is data that can be compared and shown."""

import re
from collections.abc import Iterator

import pytest

from raxol_mcp import errors
from raxol_mcp.client.trust import NotTrusted
from raxol_mcp.errors import MAX_TEXT, RaxolError, Reason, RequestFailed, Unpaid


def drawn() -> Iterator[tuple[str, str]]:
    """Yield (name, name of the one above) of each exception in the picture."""
    picture = str(errors.__doc__).split("```")[1]
    above = ["RaxolError"]
    for branch, name in re.findall(r"^([│├└─ ]+)([A-Z]\w+)", picture, re.MULTILINE):
        depth = len(branch) // 4
        above[depth:] = [name]
        yield name, above[depth - 1]


def test_the_tree_is_as_it_is_drawn() -> None:
    found = {**vars(errors), "NotTrusted": NotTrusted}
    for name, parent in drawn():
        assert found[name].__base__ is found[parent], name


def test_every_exception_is_drawn() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    raised = {one.__name__ for one in classes if issubclass(one, RaxolError)}
    assert raised - {"RaxolError"} == {name for name, _ in drawn()} - {"NotTrusted"}


def test_a_reason_tells_all_that_is_behind_it() -> None:
    reason = Reason("initialization_failed", cause=Reason("http", 401, text="Bearer"))
    assert reason.path == ("initialization_failed", "http", 401)
    assert str(reason) == "initialization_failed: http 401 (Bearer)"
    assert repr(reason) == f"Reason({reason})"


def test_reasons_are_the_same_when_a_program_would_take_them_for_the_same() -> None:
    """ours: `text` and `maybe_done` are said about an end, they are not the end."""
    one, other = Reason("http", 500, text="a"), Reason("http", 500, text="b", maybe_done=True)
    assert (one, hash(one)) == (other, hash(other))
    assert one != Reason("http", 503)
    assert one != Reason("http", 500, error={"code": 1})
    assert one != "http"


@pytest.mark.parametrize(("size", "end"), [(MAX_TEXT, "xxx"), (MAX_TEXT + 1, "...")])
def test_the_text_of_a_reason_is_bounded(size: int, end: str) -> None:
    text = Reason("busy", text="x" * size).text
    assert (len(text), text[-3:]) == (MAX_TEXT, end)


@pytest.mark.parametrize(
    ("reason", "status"),
    [(Reason("http", 503), 503), (Reason("redirect_refused", 302), None), (Reason("busy"), None)],
)
def test_a_request_that_failed_has_the_status_of_a_response(
    reason: Reason, status: int | None
) -> None:
    for error in (RequestFailed(reason), Unpaid(reason)):
        assert (error.status, error.tag, error.outcome_unknown) == (status, reason.tag, False)
