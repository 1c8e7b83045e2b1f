"""From the servers of a file to specs, once the file is trusted. Only here variables are read.

A `TrustedConfig` comes from `TrustStore.trusted`, or from `vouched` where a host asked its user in
a way of its own. Relative paths, of `cwd` and of a `command` with a slash in it, start at the
folder of the file and not wherever this process happens to be, so that what was allowed is what is
started. A `command` without a slash is looked for on PATH, and arguments are passed on as they
are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from raxol_mcp.client.config import REACH, Config, Declaration
from raxol_mcp.client.failures import reason_of
from raxol_mcp.client.spec import ClientSpec
from raxol_mcp.client.variables import Budget, Unset, expanded
from raxol_mcp.errors import InvalidSpec, Reason, UnsetVariable
from raxol_mcp.wire.values import Value

__all__ = ["Entry", "TrustedConfig", "placed", "vouched"]

# More than any system takes as the arguments and variables of one program.
_MAX_EXPANDED: Final = 1024 * 1024


class Entry(Value, frozen=True):
    """A server of a file: its spec, or the reason why it has none. Exactly one of the two."""

    name: str
    spec: ClientSpec | None = None
    reason: Reason | None = None


class TrustedConfig:
    """A file whose servers may be started. `config` is what was read."""

    __slots__ = ("config",)

    def __init__(self, config: Config) -> None:
        self.config = config

    def __repr__(self) -> str:
        return f"TrustedConfig({self.config.path!a})"

    def spec(self, name: str, environ: Mapping[str, str] | None = None) -> ClientSpec:
        """Make the spec of one server; `environ` are this process's variables if not given.

        Raises `KeyError` for a name that is not in the file, `UnsetVariable`, and `InvalidSpec`
        for what `ClientSpec` does not take. No message holds the value of a variable.
        """
        declaration = self.config.entry(name)
        return _spec(declaration, self.config.folder, os.environ if environ is None else environ)

    def specs(self, environ: Mapping[str, str] | None = None) -> list[Entry]:
        """Make every spec: an entry for each server in the file's order, then what was left out.

        Raises nothing: a server without a spec has a reason.
        """
        entries = [self._entry(declaration.name, environ) for declaration in self.config.entries]
        return entries + [
            Entry(problem.name, reason=Reason(problem.tag, text=problem.text))
            for problem in self.config.problems
            if problem.name is not None
        ]

    def _entry(self, name: str, environ: Mapping[str, str] | None) -> Entry:
        try:
            return Entry(name, spec=self.spec(name, environ))
        except (InvalidSpec, UnsetVariable) as error:
            return Entry(name, reason=reason_of(error))


def vouched(config: Config) -> TrustedConfig:
    """Trust a file without the user's store: the calling program says that it may be.

    For files that the program wrote itself, and for hosts that show
    `raxol_mcp.client.consent.describe_for_consent` to their user and keep the answer themselves.
    """
    return TrustedConfig(config)


def placed(path: str, folder: str) -> str:
    """Give a path as it is meant in a file of `folder`."""
    # No further tidying: what "link/.." means is for the system to say.
    return os.path.join(folder, path.removeprefix("./"))


def _spec(declaration: Declaration, folder: str, environ: Mapping[str, str]) -> ClientSpec:
    budget = Budget(_MAX_EXPANDED)

    def complete(value: object) -> object:
        match value:
            case str():
                return expanded(value, environ, budget=budget)
            case tuple():
                return tuple(complete(item) for item in value)
            case _:
                assert isinstance(value, dict), "a Declaration has nothing else to expand"
                return {name: complete(item) for name, item in value.items()}

    # A group is not held up by what fails at once; the file may say otherwise.
    options: dict[str, object] = {"fail_fast": True}
    try:
        for key, value in declaration.options.items():
            options[key] = complete(value) if key in REACH else value
    except Unset as error:
        raise UnsetVariable(str(error), error.name) from None
    cwd, command = options.get("cwd"), options.get("command")
    if isinstance(cwd, str) and cwd:
        folder = options["cwd"] = placed(cwd, folder)
    if isinstance(command, str) and "/" in command:
        options["command"] = placed(command, folder)
    try:
        return ClientSpec.of({**options, "name": declaration.name})
    except InvalidSpec as error:
        # What follows repeats the options, and with them values of variables.
        raise InvalidSpec(str(error).partition("; given: ")[0]) from None
