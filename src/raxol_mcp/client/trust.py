"""Which configuration files the user has allowed, by their content.

A file that lies in a folder says what is started in the user's name, and it may have come with
the folder, from anybody. So a file counts only after the user allowed its very bytes at its very
place: until then nothing it names is started or contacted, and no variable it names is read. A
file that changed since is a new file. (MCP 2026-07-28 security best practices, Local MCP Server
Compromise; ours: the rest.)

What was allowed is kept in `trusted.json` in the user's own configuration folder, which only its
owner may write (`raxol_mcp.client.owned_files`): `$XDG_CONFIG_HOME/raxol-mcp`, or
`~/.config/raxol-mcp`. Where there is no such folder, nothing is trusted; no other place is tried.

One file needs no permission: `mcp.json` in that same folder, if it is safe in the same way.
Whoever can write it can write `trusted.json` as well, so asking would protect from nobody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from raxol_mcp.client.config import Config
from raxol_mcp.client.entries import Entry, TrustedConfig
from raxol_mcp.client.owned_files import OwnedFolder, Unsafe
from raxol_mcp.errors import ConfigurationError, Reason
from raxol_mcp.wire.strict import Malformed, parse
from raxol_mcp.wire.values import Value

__all__ = ["MAX_ALLOWED", "NotTrusted", "Standing", "TrustState", "TrustStore"]

MAX_ALLOWED: Final = 1024  # files; the one allowed longest ago has to be allowed again

_FOLDER: Final = "raxol-mcp"
_STORE: Final = "trusted.json"
_OWN: Final = "mcp.json"
_VERSION: Final = 1
_MAX_STORE_BYTES: Final = 4 * 1024 * 1024


class TrustState(Enum):
    """What the user has said about a file."""

    NEVER = "never"
    CHANGED = "changed"
    ALLOWED = "allowed"


class Standing(Value, frozen=True):
    """Whether a file is trusted, and why: `text` is a sentence for people, on one line."""

    state: TrustState
    text: str

    @property
    def allowed(self) -> bool:
        """Whether what the file names may be started."""
        return self.state is TrustState.ALLOWED


class NotTrusted(ConfigurationError):
    """The user has not allowed this file as it is now; nothing it names was started or read."""

    tag = "blocked"

    def __init__(self, message: str, standing: Standing) -> None:
        super().__init__(message)
        self.standing = standing
        self.reason: Reason = Reason("blocked", "not_trusted", text=message)


class TrustStore:
    """What the user has allowed. `folder` is the user's configuration folder; None: there is none.

    Reads the store anew for every question, so that what another program allows or revokes counts
    at once. `user` is the id of its owner, that of this process if not given.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: str | os.PathLike[str] | None, *, user: int | None = None) -> None:
        self._folder = None if folder is None else OwnedFolder(os.fspath(folder), user=user)

    @classmethod
    def of_user(cls, environ: Mapping[str, str] | None = None) -> TrustStore:
        """Find the store of the user who runs this program."""
        return cls(_user_folder(os.environ if environ is None else environ))

    def __repr__(self) -> str:
        return f"TrustStore({None if self._folder is None else ascii(self._folder.path)})"

    @property
    def own_path(self) -> str | None:
        """Where the user's own file would be. It need not exist."""
        return None if self._folder is None else os.path.join(self._folder.path, _OWN)

    def state(self, config: Config) -> Standing:
        """Say what the user has allowed of a file. Raises nothing: doubt is a no."""
        if self._folder is None:
            return Standing(
                TrustState.NEVER, "there is no home folder to keep what you allow, so nothing is"
            )
        if self._is_own(self._folder, config):
            return Standing(TrustState.ALLOWED, "it is your own file")
        try:
            allowed = self._allowed(self._folder)
        except Unsafe as unsafe:
            return Standing(TrustState.NEVER, f"what you allowed is not believed: {unsafe}")
        digest = allowed.get(config.path)
        if digest is None:
            return Standing(TrustState.NEVER, "it has never been allowed")
        if digest != config.digest:
            return Standing(TrustState.CHANGED, "it has changed since it was allowed")
        return Standing(TrustState.ALLOWED, "you allowed it as it is")

    def trusted(self, config: Config) -> TrustedConfig:
        """Open a file that the user has allowed. Raises `NotTrusted`."""
        standing = self.state(config)
        if not standing.allowed:
            place = ascii(config.path)
            raise NotTrusted(
                f"{place} is not trusted: {standing.text}. To see what it would start, and allow "
                f"it: raxol-mcp trust {place}",
                standing,
            )
        return TrustedConfig(config)

    def entries(self, config: Config, environ: Mapping[str, str] | None = None) -> list[Entry]:
        """Give the servers of a file for a `ClientGroup`. Raises nothing.

        Of a file that is not trusted each server has that as its reason, and no variable is read.
        """
        try:
            trusted = self.trusted(config)
        except NotTrusted as error:
            return [Entry(declaration.name, reason=error.reason) for declaration in config.entries]
        return trusted.specs(environ)

    def allow(self, config: Config) -> None:
        """Remember that the user allowed this content at this place.

        To be called after a person saw `describe_for_consent` of the same object and said yes: it
        is not read again, so what was shown is what is allowed. Raises `ConfigurationError` where
        it cannot be kept.
        """

        def change(content: bytes | None) -> bytes:
            allowed = _parsed(content)
            allowed.pop(config.path, None)  # the newest comes last
            allowed[config.path] = config.digest
            return _written(allowed)

        self._update(change)

    def revoke(self, path: str | os.PathLike[str]) -> bool:
        """Forget that a file was allowed; it need not exist any more. False: it was not.

        Raises `ConfigurationError` where that cannot be kept.
        """
        place = os.path.realpath(os.fspath(path))

        def change(content: bytes | None) -> bytes:
            allowed = _parsed(content)
            allowed.pop(place, None)
            return _written(allowed)

        found = place in self.allowed_paths()
        if found:
            self._update(change)
        return found

    def allowed_paths(self) -> list[str]:
        """Name every file that was allowed, the latest last; some may have changed or be gone.

        Raises `ConfigurationError` where the store cannot be believed.
        """
        if self._folder is None:
            return []
        try:
            return list(self._allowed(self._folder))
        except Unsafe as unsafe:
            raise ConfigurationError(f"what you allowed is not believed: {unsafe}") from None

    def _is_own(self, folder: OwnedFolder, config: Config) -> bool:
        return (
            config.path == self.own_path
            and folder.owns(config.owner, config.mode)
            and folder.is_safe()
        )

    def _allowed(self, folder: OwnedFolder) -> dict[str, str]:
        return _parsed(folder.read(_STORE, max_bytes=_MAX_STORE_BYTES))

    def _update(self, change: Callable[[bytes | None], bytes]) -> None:
        if self._folder is None:
            raise ConfigurationError(
                "there is no home folder to keep what you allow: set HOME or XDG_CONFIG_HOME"
            )
        try:
            self._folder.update(_STORE, change, max_bytes=_MAX_STORE_BYTES)
        except Unsafe as unsafe:
            raise ConfigurationError(f"what you allow cannot be kept: {unsafe}") from None


def _user_folder(environ: Mapping[str, str]) -> str | None:
    configured = environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(configured):  # a relative one is to be ignored (XDG base directories 0.8)
        return os.path.join(configured, _FOLDER)
    home = environ.get("HOME", "") or _home_of_record()
    if os.path.isabs(home) and os.path.isdir(home):
        return os.path.join(home, ".config", _FOLDER)
    return None


def _home_of_record() -> str:
    import pwd  # not there on Windows, where this module must still be importable

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def _parsed(content: bytes | None) -> dict[str, str]:
    """Read the store: `{path: digest}`, the one allowed longest ago first. Raises `Unsafe`.

    A store that is not understood is not guessed at, and never replaced: it may be a newer one.
    """
    if content is None:
        return {}
    try:
        value = parse(content, max_depth=8)
    except Malformed:
        value = None
    match value:
        case {"version": 1, "allowed": dict() as allowed} if all(
            isinstance(digest, str) for digest in allowed.values()
        ):
            return allowed
        case _:
            raise Unsafe(f"{_STORE} is not understood; remove it to begin anew")


def _written(allowed: Mapping[str, str]) -> bytes:
    kept = dict(allowed)
    while True:
        text = json.dumps({"version": _VERSION, "allowed": kept}, indent=1, ensure_ascii=False)
        content = text.encode() + b"\n"
        if len(kept) <= MAX_ALLOWED and len(content) <= _MAX_STORE_BYTES:
            return content
        del kept[next(iter(kept))]
