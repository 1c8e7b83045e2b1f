"""Small files that nobody but their owner can have written, in a folder of which that holds too.

Knows bytes; what they mean is decided elsewhere. Whoever can write one of these files decides what
is started in the user's name, so it is believed only when the file, its folder and every folder
above belong to the user or to root and others cannot write there. Links are not followed: they
let somebody else choose the place. A sticky folder such as /tmp may be above: what is in it stays
its owner's.

Everything is judged by the open descriptor that is then read or written, so between the look and
the use nothing can be exchanged.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

__all__ = ["OwnedFolder", "Unsafe"]

_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_ROOT: Final = 0
_LOCK_PATIENCE: Final = 5.0
_LOCK_INTERVAL: Final = 0.05


class Unsafe(Exception):
    """Why a file or folder is not used. A sentence for people, on one line."""


class OwnedFolder:
    """A folder of the user `user` (a user id) at `path`, which may not exist yet.

    Opened anew for each use. `lock_patience` bounds the wait for another writer, in seconds.
    """

    __slots__ = ("_lock_patience", "_user", "path")

    def __init__(
        self, path: str, *, user: int | None = None, lock_patience: float = _LOCK_PATIENCE
    ) -> None:
        parent, name = os.path.split(os.path.abspath(path))
        self.path = os.path.join(os.path.realpath(parent), name)
        self._user = os.geteuid() if user is None else user
        self._lock_patience = lock_patience

    def owns(self, owner: int, mode: int) -> bool:
        """Say whether what has this owner and mode can have been written by the user alone."""
        return owner == self._user and not mode & _WRITABLE_BY_OTHERS

    def is_safe(self) -> bool:
        """Say whether the folder is there and as safe as it must be."""
        try:
            with self._opened() as folder:
                return folder is not None
        except Unsafe:
            return False

    def read(self, name: str, *, max_bytes: int) -> bytes | None:
        """Read a file; None where it, or the folder, does not exist. Raises `Unsafe`."""
        with self._opened() as folder:
            return None if folder is None else self._content(folder, name, max_bytes)

    def update(self, name: str, change: Callable[[bytes | None], bytes], *, max_bytes: int) -> None:
        """Replace a file by what `change` makes of its content, in one step.

        Nobody else changes it meanwhile, and whoever reads it finds the old or the new content,
        even after a power failure. Makes the folder, for its owner only, where there is none.
        Raises `Unsafe`, and what `change` raises; the old content is there then.
        """
        self._make()
        with self._opened() as folder:
            if folder is None:
                raise Unsafe(f"{self.path!a} cannot be made")
            with self._locked(folder, name):
                content = change(self._content(folder, name, max_bytes))
                try:
                    _replace(folder, name, content)
                except OSError as error:
                    place = ascii(os.path.join(self.path, name))
                    raise Unsafe(f"{place} cannot be written: {error.strerror}") from None

    # -- the folder

    def _make(self) -> None:
        missing = []
        path = self.path
        while not os.path.lexists(path):
            missing.append(path)
            path = os.path.dirname(path)
        try:
            for folder in reversed(missing):
                with suppress(FileExistsError):  # somebody else made it; it is judged like any
                    os.mkdir(folder, 0o700)
        except OSError as error:
            raise Unsafe(f"{self.path!a} cannot be made: {error.strerror}") from None

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._judge_above()
        try:
            folder = os.open(self.path, flags)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            # ELOOP or ENOTDIR for a link, as the system likes.
            raise Unsafe(
                f"{self.path!a} is a link, no folder or not open to you ({error.strerror})"
            ) from None
        try:
            self._judge(self.path, os.fstat(folder))
            yield folder
        finally:
            os.close(folder)

    def _judge_above(self) -> None:
        path = self.path
        while path != (parent := os.path.dirname(path)):
            path = parent
            try:
                found = os.stat(path)
            except FileNotFoundError:
                continue  # nor is there anything in it
            except OSError as error:
                raise Unsafe(f"{path!a} cannot be looked at: {error.strerror}") from None
            if found.st_uid not in (self._user, _ROOT):
                raise Unsafe(f"{path!a} belongs to somebody else")
            if found.st_mode & _WRITABLE_BY_OTHERS and not found.st_mode & stat.S_ISVTX:
                raise Unsafe(f"others can write to {path!a}: chmod go-w")

    def _judge(self, path: str, found: os.stat_result) -> None:
        if found.st_uid != self._user:
            raise Unsafe(f"{path!a} belongs to somebody else")
        if not self.owns(found.st_uid, found.st_mode):
            raise Unsafe(f"others can write to {path!a}: chmod go-w")

    @contextmanager
    def _locked(self, folder: int, name: str) -> Iterator[None]:
        """Keep other writers out. By a file of its own: a network file system locks no folder."""
        place = os.path.join(self.path, f".{name}.lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(f".{name}.lock", flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise Unsafe(f"{place!a} cannot be opened: {error.strerror}") from None
        try:
            tries = max(round(self._lock_patience / _LOCK_INTERVAL), 0)
            while not _taken(descriptor, place):
                if tries == 0:
                    raise Unsafe(f"another program holds {place!a}")
                tries -= 1
                time.sleep(_LOCK_INTERVAL)
            yield
        finally:
            os.close(descriptor)  # and with it the lock; the file stays, for the next

    # -- its files

    def _content(self, folder: int, name: str, max_bytes: int) -> bytes | None:
        place = os.path.join(self.path, name)
        # Opening a pipe must not wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unsafe(f"{place!a} is a link or not open to you ({error.strerror})") from None
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise Unsafe(f"{place!a} is not a plain file")
            self._judge(place, found)
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(max_bytes + 1)
        except OSError as error:
            raise Unsafe(f"{place!a} cannot be read: {error.strerror}") from None
        finally:
            os.close(descriptor)
        if len(content) > max_bytes:
            raise Unsafe(f"{place!a} is larger than {max_bytes} bytes")
        return content


def _taken(descriptor: int, place: str) -> bool:
    import fcntl  # not there on Windows, where this module must still be importable

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise Unsafe(f"{place!a} cannot be locked: {error.strerror}") from None
    return True


def _replace(folder: int, name: str, content: bytes) -> None:
    """Write beside the file and put it in its place. Only one does that at a time: see the lock."""
    beside = f".{name}.new"
    with suppress(FileNotFoundError):
        os.unlink(beside, dir_fd=folder)  # of a writer that did not live to the end
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, 0o600, dir_fd=folder)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask took away
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.fsync(descriptor)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
    os.fsync(folder)  # the name as well as the content
