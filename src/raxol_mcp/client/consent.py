r"""What a person has to read before a configuration file may start or contact anything.

Asks nobody and decides nothing. The whole command line of every server is shown, however long,
each part of it in double quotes with the escapes of JSON, so that nothing is invisible, runs into
its neighbour or turns the line around; that is also why a letter of another script is shown as
its number: `\u0440` is not `p`. (MCP 2026-07-28 security best practices, Local MCP Server
Compromise: show the exact command, untruncated; SEP-1024.)

Values of headers and variables are hidden, for the text may end up in a log: of each only the
variables it refers to are shown. Where a variable changes which code runs, its value is part of
the command and is shown like it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from raxol_mcp.client.config import REACH, Config, Declaration
from raxol_mcp.client.entries import placed
from raxol_mcp.client.variables import Reference, parts_of

__all__ = ["describe_for_consent"]

_HIDDEN: Final = "<hidden>"
# Variables that make a loader, a shell, an interpreter or git run other code than the command
# line names, and those that lead its traffic elsewhere.
_STEERING: Final = re.compile(
    r"PATH|IFS|ENV|BASH_.*|SHELLOPTS|SHELL|HOME|LD_.*|DYLD_.*|GCONV_PATH|GLIBC_.*"
    r"|PYTHON.*|VIRTUAL_ENV|UV_.*|PIP_.*|NODE_.*|NPM_.*|BUN_.*|DENO_.*|XDG_.*|PERL.*|RUBY.*|GEM_.*"
    r"|BUNDLE_.*|JAVA_.*|JDK_.*|_JAVA_.*|CLASSPATH|DOTNET_.*|COMPlus_.*|CORECLR_.*|PHP.*|LUA_.*"
    r"|GIT_.*|DOCKER_.*|EDITOR|VISUAL|PAGER|(?:HTTPS?|ALL|NO)_PROXY|SSL_.*|OPENSSL_.*",
    re.IGNORECASE,
)
_USER_INFO: Final = re.compile(r"(?<=://)[^/?#\\]*@")


def describe_for_consent(config: Config) -> str:
    """Write down all that a file would start and contact, in lines of printable ASCII.

    To be shown as it is, whole, with a question behind it whose default is no; then
    `TrustStore.allow` takes the same object.
    """
    count = len(config.entries)
    lines = [f"{_quoted(config.path)} names {count} server{'' if count == 1 else 's'}."]
    for number, declaration in enumerate(config.entries, 1):
        lines += ["", f"{number}. {declaration.name}", *_server(declaration, config.folder)]
    if config.problems:
        lines += ["", "Left out:"]
        lines += [f"   {problem.name or 'the file'}: {problem.text}" for problem in config.problems]
    return "\n".join(lines)


def _server(declaration: Declaration, folder: str) -> Iterator[str]:
    options = declaration.options
    if declaration.kind == "stdio":
        where = _placed(str(options["cwd"]), folder) if "cwd" in options else folder
        given = " and variables" if options.get("inherit_env") is not False else ""
        yield f"   starts this program on your computer, with all your rights{given}:"
        yield f"      {_command_line(options, where)}"
        if "cwd" in options:
            yield f"   in the folder {_quoted(where)}"
    else:
        yield "   connects to this address, and sends it what its tools are given:"
        yield f"      {_quoted(_USER_INFO.sub(f'{_HIDDEN}@', str(options['url'])))}"
    yield from _named_values("variable", options.get("env"))
    yield from _named_values("header", options.get("headers"))
    if declaration.variables:
        yield f"   reads these variables of yours: {', '.join(declaration.variables)}"
    for key in sorted(options.keys() - set(REACH)):
        yield f"   option {key}: {_quoted(options[key])}"
    if declaration.unknown:
        yield f"   ignored: {', '.join(map(_quoted, declaration.unknown))}"


def _command_line(options: Mapping[str, object], folder: str) -> str:
    command = str(options["command"])
    arguments = options.get("args", ())
    parts = [
        _placed(command, folder) if "/" in command else command,
        *(arguments if isinstance(arguments, tuple) else ()),
    ]
    return " ".join(map(_quoted, parts))


def _placed(path: str, folder: str) -> str:
    # Where one that begins with a reference is meant to be depends on the value.
    return path if path.startswith("${") else placed(path, folder)


def _named_values(kind: str, pairs: object) -> Iterator[str]:
    if not isinstance(pairs, dict):
        return
    for name, value in pairs.items():
        steering = kind == "variable" and _STEERING.fullmatch(name)
        shown = _quoted(value) + ", which can change what runs" if steering else _outline(value)
        yield f"   {kind} {_quoted(name)}: {shown}"


def _outline(value: str) -> str:
    """Show the references of a value and hide the text around them, and their defaults."""
    return "".join(
        _HIDDEN
        if not isinstance(part, Reference)
        else f"${{{part.name}}}"
        if part.default is None
        else f"${{{part.name}:-{_HIDDEN}}}"
        for part in parts_of(value)
    )


def _quoted(value: object) -> str:
    """Write a text, or any value of JSON, in printable ASCII."""
    return json.dumps(value)  # which spells out everything but space to "~"
