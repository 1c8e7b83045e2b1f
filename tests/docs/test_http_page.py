"""Every command of docs/http.md is run, and prints what the page says.

A block that serves is started, and the blocks after it are said to it. All of it as it stands on
the page, but for the port, which is one that is free.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "http.md").read_text("utf-8")
# Bounds every wait for a process, in seconds; none should come near it.
TIMEOUT = 60.0

SERVES = re.compile(r"^(raxol-mcp serve|uvicorn)(?!.*\|\| test)", re.MULTILINE)
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)


class Said(NamedTuple):
    """Commands, and what they print."""

    commands: str
    printed: str


class Section(NamedTuple):
    """A server, and what is said to it."""

    serves: str
    said: list[Said]


def sections() -> list[Section]:
    """Read the page."""
    found: list[Section] = []
    for kind, text in BLOCK.findall(PAGE):
        if kind == "text":
            said = found[-1].said
            said[-1] = Said(said[-1].commands, text)
        elif SERVES.search(text):
            found.append(Section(text, []))
        else:
            found[-1].said.append(Said(text, ""))
    return found


SECTIONS = sections()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Build an environment in which the programs of the page are those of this project."""
    folder = tmp_path_factory.mktemp("bin")
    for name, module in (("raxol-mcp", "raxol_mcp"), ("uvicorn", "uvicorn")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n', "utf-8")
        program.chmod(0o755)
    sources = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, sys.path)])
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RAXOL_MCP_")}
    return {**kept, "PATH": path, "PYTHONPATH": sources}


@contextmanager
def served(command: str, environment: dict[str, str]) -> Iterator[int]:
    """Run a server of the page; yield its port."""
    script = SERVES.sub(r"exec \1", command.replace("--port 8000", "--port 0"))
    assert "--port 0" in script
    with subprocess.Popen(
        ["bash", "-euc", script],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            found = (ADDRESS.search(line) for line in process.stderr)
            port = next((match[1] for match in found if match), None)
            assert port is not None, "it did not say where it serves"
            yield int(port)
        finally:
            process.terminate()
            process.wait(TIMEOUT)


def matches(printed: str, told: str) -> bool:
    """Compare what was printed with what the page tells, white space aside."""
    pattern = ".*".join(re.escape("".join(part.split())) for part in told.split("…"))
    return re.fullmatch(pattern, "".join(printed.split())) is not None


@pytest.mark.parametrize("section", SECTIONS, ids=[str(n) for n in range(len(SECTIONS))])
def test_what_the_page_says_happens(section: Section, environment: dict[str, str]) -> None:
    with served(section.serves, environment) as port:
        for said in section.said:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", said.commands.replace(":8000", f":{port}")],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            assert done.returncode == 0, (said.commands, done.stdout)
            assert matches(done.stdout, said.printed), (said.commands, done.stdout)


def test_everything_that_is_shown_is_run() -> None:
    run = [said for section in SECTIONS for said in section.said]
    assert all(said.printed for said in run)
    shown = re.findall(r"^(?:\w+=\$\()?curl ", PAGE, re.MULTILINE)
    assert sum(said.commands.count("curl -s") for said in run) == len(shown)
    assert len(shown) > 15


@pytest.mark.parametrize(
    ("printed", "told", "same"),
    [
        ("a\n b", "ab", True),
        ('{"id":"x1"}', '{"id":"…"}', True),
        ('{"id":"x1"}', '{"id":"…","more"}', False),
        ("a.c", "abc", False),
        ("abc", "a.c", False),
        ("error", "", False),
    ],
)
def test_a_difference_is_noticed(printed: str, told: str, same: bool) -> None:
    assert matches(printed, told) is same
