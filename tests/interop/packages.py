"""Servers and tools that others wrote, each installed once below build/ and kept there.

Without npm, or with a registry that cannot be reached, the tests that need them are skipped and
say so; whatever else goes wrong fails them. Every version is pinned, and another pin is another
installation.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "build"
# Bounds every step of an installation, in seconds; none should come near it.
BOUND: Final = 600.0

# How npm and pip say that there is no network, or no registry at its end.
_UNREACHABLE: Final = re.compile(
    r"EAI_AGAIN|ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ERR_SOCKET_TIMEOUT"
    r"|ETIMEDOUT|ConnectTimeoutError|NameResolutionError|NewConnectionError|ProxyError"
    r"|ReadTimeoutError|Network is unreachable|Temporary failure in name resolution"
)


def once(folder: Path, pins: Sequence[str], install: Callable[[], None]) -> Path:
    """Install into a folder what is not there already; return the folder."""
    noted = folder / "installed.txt"
    if not noted.exists() or noted.read_text("utf-8").split() != list(pins):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install()
        noted.write_text("\n".join(pins), "utf-8")
    return folder


def run(what: str, command: Sequence[str], **environment: str) -> None:
    """Run one step of an installation. Skips the test without a registry, else fails it."""
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=BOUND,
        check=False,
    )
    if done.returncode:
        said = done.stdout.decode(errors="replace")
        unreachable = _UNREACHABLE.search(said)
        if unreachable is not None:
            pytest.skip(f"{what} could not be fetched from its registry: {unreachable[0]}")
        pytest.fail(f"{what} could not be installed:\n{said}")


def npm_environment(folder: Path) -> dict[str, str]:
    """Return variables: its programs come first on PATH, and nothing is written elsewhere."""
    path = os.pathsep.join([str(folder / "node_modules" / ".bin"), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(folder), "npm_config_cache": str(folder / "cache")}


def from_npm(name: str, *packages: str) -> Path:
    """Install packages from npm, in this order; return the folder that has `node_modules`.

    A `node` among them is used for those after it: npm chooses versions by the Node it runs on.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = BUILD / name

    def install() -> None:
        for package in packages:
            command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
            run(package, command, **npm_environment(folder))

    return once(folder, packages, install)


def from_pypi(name: str, *packages: str) -> Path:
    """Install packages from PyPI into an environment of their own; return its Python."""
    folder = BUILD / name
    python = folder / "bin" / "python"

    def install() -> None:
        run("a virtual environment", [sys.executable, "-m", "venv", str(folder)])
        run(" ".join(packages), [str(python), "-m", "pip", "install", "--quiet", *packages])

    once(folder, packages, install)
    return python


def source_of(name: str, package: str, part: str) -> Path:
    """Fetch the source distribution of `package` (a pin) from PyPI; return `part` of its tree."""
    folder = BUILD / name

    def install() -> None:
        only = ["--no-deps", "--no-binary", package.partition("==")[0], "--dest", str(folder)]
        run(package, [sys.executable, "-m", "pip", "download", "--quiet", *only, package])
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as tree:
            tree.extractall(folder, filter="data")

    once(folder, [package], install)
    (found,) = folder.glob(f"*/{part}")
    return found
