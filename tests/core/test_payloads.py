"""Payloads: the texts of the core's own results are exact, because clients match on them."""

from __future__ import annotations

import json

import pytest

from raxol_mcp.core import payloads
from raxol_mcp.wire.jsonrpc import JSONObject


def text_of(result: JSONObject) -> str:
    """Give the text of a failed result, checking the rest of it."""
    content = result["content"]
    assert isinstance(content, list)
    (item,) = content
    assert result == {"content": [{"type": "text", "text": item["text"]}], "isError": True}
    assert item["type"] == "text"
    return str(item["text"])


def test_a_failed_call_is_a_result_and_says_so() -> None:
    """MCP 2025-11-25 server/tools §Error Handling: execution errors are results."""
    assert text_of(payloads.tool_error("Error: ValueError")) == "Error: ValueError"


@pytest.mark.parametrize("decision", ["ask", "deny"])
def test_a_refusal_can_be_read_by_a_machine(decision: str) -> None:
    """Rulings §Codes and payloads: the JSON object, its members in this order."""
    text = text_of(payloads.denied("delete", decision=decision, detail="user decline"))
    assert text == (
        f'{{"error":"authorization_required","tool":"delete","decision":"{decision}",'
        '"detail":"user decline"}'
    )


@pytest.mark.parametrize("detail", ['a "quote"', "line\nbreak", "naïve", "\\", "\x00", "💥"])
def test_a_refusal_is_json_whatever_the_reason_is(detail: str) -> None:
    text = text_of(payloads.denied("delete", decision="deny", detail=detail))
    assert json.loads(text)["detail"] == detail
    assert "\n" not in text


@pytest.mark.parametrize("scope", ["server", "connection"])
def test_busy_names_its_scope_and_may_be_retried(scope: str) -> None:
    """Rulings §Codes and payloads."""
    assert text_of(payloads.busy(scope)) == (
        f'{{"error":"server_busy","scope":"{scope}","retryable":true}}'
    )


@pytest.mark.parametrize("reason", [payloads.TIMED_OUT, payloads.CRASHED])
def test_a_worker_that_ended_without_a_word(reason: str) -> None:
    """Rulings §Codes and payloads."""
    assert json.loads(text_of(payloads.callback_failed(reason))) == {"error": reason}


def test_the_two_reasons() -> None:
    assert (payloads.TIMED_OUT, payloads.CRASHED) == ("callback_timeout", "callback_crashed")
