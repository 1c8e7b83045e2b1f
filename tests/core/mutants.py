"""Planted bugs, each of which the tests of the core must find: `python -m tests.core.mutants`.

A mutant is a small change of the source, listed in `mutants.diff` and applied to a copy of the
package. The walk over that copy must go wrong, that of the client for its modules; where it does
not, a module test of the core must fail. The text that a mutant changes must be there exactly
once, or the run fails: a list that no longer fits the source proves nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["MUTANTS", "Mutant", "Verdict", "judge", "patched"]

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "raxol_mcp"
WALK_STEPS: Final = 40_000
TIMEOUT: Final = 300.0
# The modules that the client's walk goes through; the other walk goes through the rest.
CLIENT: Final = frozenset(
    {
        "client",
        "client_ledger",
        "greeter",
        "greeting",
        "reservations",
        "session",
        "tickets",
        "traffic",
        "unasked",
        "verdicts",
        "window",
    }
)
TESTS: Final = ("-q", "-x", "-p", "no:cacheprovider", "tests/core")
NOT_THESE: Final = tuple(
    f"--ignore=tests/core/test_{name}.py" for name in ("walk", "client_walk", "mutants")
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug: `changes` are (old, new) texts of one module of the core."""

    name: str
    module: str
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: who found it, or None; and what was said."""

    mutant: Mutant
    killer: str | None
    said: str


def read(text: str) -> list[Mutant]:
    """Read `mutants.diff`: `## module: name` and its changes, `@@` between them.

    A line of a change is context (a space), removed (`-`) or planted (`+`).
    """
    mutants: list[Mutant] = []
    for block in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = block.partition("\n")
        module, _, name = title.partition(": ")
        changes = []
        for change in re.split(r"^@@\n", body, flags=re.MULTILINE):
            lines = [line for line in change.splitlines(keepends=True) if line[0] in " -+"]
            old = "".join(line[1:] for line in lines if line[0] != "+")
            changes.append((old, "".join(line[1:] for line in lines if line[0] != "-")))
        mutants.append(Mutant(name, module, tuple(changes)))
    return mutants


MUTANTS: Final = tuple(read(Path(__file__).with_suffix(".diff").read_text("utf-8")))


def patched(mutant: Mutant, source: str) -> str:
    """Apply a mutant. Raises ValueError when its text is not there exactly once."""
    for old, new in mutant.changes:
        if source.count(old) != 1:
            raise ValueError(f"{mutant.name!r}: {source.count(old)} times in the source: {old!r}")
        source = source.replace(old, new)
    compile(source, mutant.module, "exec")
    return source


def _misfits(mutant: Mutant, package: Path) -> list[str]:
    try:
        patched(mutant, (package / "core" / f"{mutant.module}.py").read_text("utf-8"))
    except (OSError, ValueError) as error:
        return [str(error)]
    return []


def _python(arguments: Iterable[str], folder: Path) -> tuple[int, str]:
    """Run a Python program on the package in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _copy(package: Path, target: Path) -> None:
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__"))


def judge(
    mutant: Mutant, *, package: Path = PACKAGE, steps: int = WALK_STEPS, seed: int = 1
) -> Verdict:
    """Run the tests over a copy of `package` with `mutant` in it.

    Raises ValueError for a mutant that does not fit the source, or does not even start.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _copy(package, folder / "raxol_mcp")
        path = folder / "raxol_mcp" / "core" / f"{mutant.module}.py"
        path.write_text(patched(mutant, path.read_text("utf-8")), "utf-8")
        program = "tests.core.client_walk" if mutant.module in CLIENT else "tests.core.walk"
        walk = ["-m", program, "--steps", str(steps), "--seed", str(seed)]
        code, said = _python(walk, folder)
        wrong = re.match(r"WRONG after (\d+) steps", said)
        if code == 1 and wrong:
            return Verdict(mutant, f"the walk, step {wrong[1]}", said)
        if code != 0:
            raise ValueError(f"{mutant}: the walk did not run\n{said}")
        tests = ["-m", "pytest", "-o", f"pythonpath={folder} .", *TESTS, *NOT_THESE]
        code, said = _python(tests, folder)
        if code not in (0, 1):
            raise ValueError(f"{mutant}: the tests did not run\n{said}")
        failed = re.search(r"^FAILED (\S+)", said, re.MULTILINE)
        return Verdict(mutant, f"{failed[1]}" if failed else None, said)


def main() -> int:
    """Judge every mutant and print a table; 1 when one survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.core.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose name has one of these words")
    parser.add_argument("--steps", type=int, default=WALK_STEPS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    words = options.words
    chosen = [
        mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)
    ]
    started_at = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        package = Path(name) / "raxol_mcp"
        _copy(PACKAGE, package)  # so that who edits the source meanwhile changes nothing here

        def verdict_on(mutant: Mutant) -> Verdict:
            return judge(mutant, package=package, steps=options.steps, seed=options.seed)

        misfits = [sentence for mutant in chosen for sentence in _misfits(mutant, package)]
        if misfits:
            print(*misfits, sep="\n")
            return 1
        for module in ("server", "client"):
            control = verdict_on(Mutant("nothing is changed", module, ()))
            if control.killer is not None:
                print(f"The source itself is found wrong by {control.killer}: {control.said}")
                return 1
        verdicts = list(pool.map(verdict_on, chosen))
    for verdict in verdicts:
        print(f"{verdict.mutant.module:14}{verdict.mutant.name:76}{verdict.killer or 'SURVIVES'}")
    survivors = sum(verdict.killer is None for verdict in verdicts)
    seconds = time.perf_counter() - started_at
    print(f"{len(verdicts) - survivors} of {len(verdicts)} found, in {seconds:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
