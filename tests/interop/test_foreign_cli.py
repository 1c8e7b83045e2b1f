"""The command line against servers that others wrote: what it prints, and how it exits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interop.foreign import BOUND, free_port, serving
from tests.interop.packages import ROOT, from_npm
from tests.interop.test_foreign_npm import OVER_HTTP, PACKAGES

pytestmark = pytest.mark.slow

# docs/cli.md: a result that is an error, a server that is not there, an error of the protocol.
SAID_NO: Final = 3
NOT_THERE: Final = 4
REFUSED: Final = 1


@pytest.fixture(scope="module")
def everything() -> Path:
    """Install `server-everything`; return its program."""
    folder = from_npm("foreign-npm", *PACKAGES)
    return folder / "node_modules" / ".bin" / "mcp-server-everything"


def raxol(*arguments: str, code: int = 0) -> str:
    """Run the command line without a terminal; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "raxol_mcp", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_it_lists_calls_reads_and_prompts(everything: Path) -> None:
    place = ["--command", str(everything)]
    assert "get-structured-content" in raxol("tools", *place)
    assert raxol("call", *place, "echo", "message=Grüße ✓") == "Echo: Grüße ✓\n"
    added = json.loads(raxol("call", *place, "--json", "get-sum", "a=1", "b=2"))
    assert added["content"] == [{"type": "text", "text": "The sum of 1 and 2 is 3."}]
    assert "[image/png, 4,033 bytes]" in raxol("call", *place, "get-tiny-image")
    assert "Resource 1" in raxol("read", *place, "demo://resource/dynamic/text/1")
    assert "weather in Bern" in raxol("prompt", *place, "args-prompt", "city=Bern")
    status = json.loads(raxol("status", *place, "--json"))["servers"][0]
    assert (status["status"], status["era"]) == ("ready", "handshake")


def test_what_is_asked_without_a_terminal_is_declined(everything: Path) -> None:
    said = raxol("call", "--command", str(everything), "trigger-elicitation-request")
    assert "User declined" in said


def test_its_exit_says_what_went_wrong(everything: Path, tmp_path: Path) -> None:
    place = ["--command", str(everything)]
    raxol("call", *place, "no-such-tool", code=SAID_NO)
    raxol("read", *place, "demo://absent", code=REFUSED)
    raxol("tools", "--command", str(tmp_path / "absent"), code=NOT_THERE)
    raxol("tools", "--url", f"http://127.0.0.1:{free_port()}/mcp", code=NOT_THERE)


@pytest.mark.parametrize("how", OVER_HTTP)
def test_it_finds_out_which_transport_a_url_has(everything: Path, how: str) -> None:
    says, path = OVER_HTTP[how]
    with serving([everything, how], says, env={"PORT": str(free_port())}) as port:
        place = ["--url", f"http://127.0.0.1:{port}/{path}"]
        assert raxol("call", *place, "echo", "message=a") == "Echo: a\n"
