"""Check that each module of wire/ and core/ is covered completely by its own test file.

Coverage by somebody else's test is luck: the line runs, and nobody looks at what it did. So each
module is measured alone, with `tests/<folder>/test_<module>.py` (and `test_<module>_*.py`, where
the tests are many). Exits 1 when a line or a branch is left out, a test file is missing or fails.

    python tools/cover_own.py                    # all of them
    python tools/cover_own.py jsonrpc calls      # some
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "raxol_mcp"
FOLDERS = ("wire", "core")


class Measured(msgspec.Struct):
    """What coverage says about a file. A branch is (from line, to line), below 0: out."""

    missing_lines: list[int]
    missing_branches: list[tuple[int, int]]


class Report(msgspec.Struct):
    """The part of coverage's JSON report that is read here."""

    files: dict[str, Measured]


def has_code(path: Path) -> bool:
    """Say whether a module does more than import, and list names."""
    return any(
        not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
        and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in ast.parse(path.read_text("utf-8")).body
    )


def own_tests(module: Path) -> list[Path]:
    """Return the test files of a module.

    `test_seal_keys.py` belongs to `seal`, unless there is a module `seal_keys`.
    """
    names = sorted((path.stem for path in module.parent.glob("*.py")), key=len, reverse=True)
    found = []
    for path in sorted((ROOT / "tests" / module.parent.name).glob("test_*.py")):
        stem = path.stem.removeprefix("test_")
        owner = next((name for name in names if stem == name or stem.startswith(f"{name}_")), None)
        if owner == module.stem:
            found.append(path)
    return found


def measure(module: Path) -> list[str]:
    """Run the module's own tests and return what is wrong, one sentence each."""
    tests = own_tests(module)
    if not tests:
        return [f"no test file tests/{module.parent.name}/test_{module.stem}.py"]
    with tempfile.TemporaryDirectory() as folder:
        measured = Path(folder, "coverage")
        report = Path(folder, "report.json")
        coverage = (sys.executable, "-m", "coverage")
        pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow")
        run = _run(*coverage, "run", f"--data-file={measured}", *pytest, *map(str, tests))
        if run.returncode:
            return ["its tests fail", *run.stdout.splitlines()]
        only = (f"--data-file={measured}", f"--include={module}", "--fail-under=0")
        told = _run(*coverage, "json", *only, "-o", str(report))
        if told.returncode:
            return ["coverage has no report", *told.stdout.splitlines()]
        files = msgspec.json.decode(report.read_bytes(), type=Report).files
        return [sentence for found in files.values() for sentence in _sentences(found)]


def main(names: list[str]) -> int:
    """Measure the modules called `names`, or all; print a line for each; return the exit code."""
    modules = [
        path
        for folder in FOLDERS
        for path in sorted((SOURCE / folder).glob("*.py"))
        if has_code(path) and (not names or path.stem in names)
    ]
    bad = 0
    # Each measurement is a process of its own, so threads are enough to keep the cores busy.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for module, wrong in zip(modules, threads.map(measure, modules), strict=True):
            bad += bool(wrong)
            name = module.relative_to(SOURCE)
            print(name if wrong else f"{name} 100 %")
            for line in wrong:
                print(f"    {line}")
    print(f"{len(modules) - bad} of {len(modules)} modules are covered by their own tests")
    return 1 if bad or not modules else 0


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's folder; its two outputs come back as one."""
    return subprocess.run(
        command,
        cwd=ROOT,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _sentences(found: Measured) -> list[str]:
    """Return what a module's report calls missing."""
    wrong = []
    if found.missing_lines:
        wrong.append("lines not run: " + ", ".join(map(str, found.missing_lines)))
    if found.missing_branches:
        arrows = (f"{start} -> {end}" for start, end in found.missing_branches)
        wrong.append("branches not taken: " + ", ".join(arrows))
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
