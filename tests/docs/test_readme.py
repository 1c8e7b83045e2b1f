"""What the README says of the conformance harness is what is run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
SCRIPT = (ROOT / "tools" / "run_conformance.sh").read_text("utf-8")


def test_the_harness_is_the_pinned_one() -> None:
    (pinned,) = re.findall(r"^HARNESS=(\S+)@(\S+)$", SCRIPT, re.MULTILINE)
    assert f"`{pinned[0]}` {pinned[1]}" in README


def test_every_run_has_its_row_and_none_has_failed() -> None:
    for variable, row in (
        ("REVISIONS", r"\| every scenario of {} \| (\d+) of \1 \| \d+ passed, 0 failed \|"),
        ("REQUIREMENTS", r"\| the frozen requirements of {} \| (\d+) of \1 \| \|"),
    ):
        (names,) = re.findall(rf'^{variable}="(.+)"$', SCRIPT, re.MULTILINE)
        for name in names.split():
            assert re.search(row.format(re.escape(name)), README), name


def test_a_change_is_not_taken_without_it() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (steps,) = re.findall(r"^ci: ([a-z ]+)", makefile, re.MULTILINE)
    assert "conformance" in steps.split()
