"""A server for the text files of one folder: anybody may read, a person agrees to every write.

    raxol-mcp serve examples/files_server.py          # with FILES_FOLDER=/some/folder
    python examples/files_server.py /some/folder

* `list_files` and `read_file` run.
* `write_file` asks first: the person sees the path and the text, and decides.
* `delete_file` is denied, and not even listed, unless FILES_ALLOW_DELETE=1 or --allow-delete
  says otherwise. Then it asks as well.

Nothing outside the folder is ever touched: see `Folder`.
"""

import argparse
import asyncio
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from raxol_mcp import (
    Ask,
    AuthorizationContext,
    Authorizer,
    ConfigurationError,
    Decision,
    Server,
    ToolError,
    allow,
    deny,
    nonblocking,
    serve_stdio,
)

MAX_BYTES = 256 * 1024
MAX_FILES = 1000

# What the person reads. An argument is shown without line breaks of its own, so whatever a model
# puts into one, it cannot write a line that looks like ours.
WRITE = "Write this file, replacing what is there?\npath: {path}\ntext: {text}"
DELETE = "Delete this file for good?\npath: {path}"


class Folder:
    """One folder of text files that a path cannot lead out of.

    A path is refused when it is absolute, climbs (`..`), or holds a NUL. What is left is opened
    component by component, each below the one before and never through a link: there is no
    moment between a check and its use in which somebody could swap a folder for a link.
    """

    def __init__(self, root: str) -> None:
        try:
            self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigurationError(f"cannot serve {root!r}: {error.strerror}") from None

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the folder that holds `path`; give its descriptor and the name inside it."""
        *folders, name = parts_of(path)
        here = os.dup(self._root)
        try:
            for folder in folders:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                below = os.open(folder, flags, dir_fd=here)
                os.close(here)
                here = below
            yield here, name
        except OSError as error:
            # ELOOP and ENOTDIR are a link on the way; neither says where it leads.
            raise ToolError(f"{path}: {error.strerror}") from None
        finally:
            os.close(here)

    def files(self) -> list[str]:
        """List the regular files, with their sizes."""
        found: list[str] = []
        for where, folders, names, here in os.fwalk(".", dir_fd=self._root):
            folders.sort()
            for name in sorted(names):
                with suppress(OSError):  # deleted meanwhile
                    status = os.stat(name, dir_fd=here, follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found.append(f"{PurePosixPath(where, name)} ({status.st_size} bytes)")
            if len(found) > MAX_FILES:
                return [*found[:MAX_FILES], "... and more"]
        return found

    def read(self, path: str) -> str:
        """Read one text file."""
        with self.opened(path) as (folder, name):
            # Without O_NONBLOCK opening a pipe would wait for somebody to write.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(name, flags, dir_fd=folder), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ToolError(f"{path} is not a file")
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ToolError(f"{path} is longer than {MAX_BYTES} bytes")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ToolError(f"{path} is not UTF-8 text") from None

    def write(self, path: str, text: str) -> int:
        """Write one text file, whole or not at all; return its size in bytes."""
        data = text.encode()
        if len(data) > MAX_BYTES:
            raise ToolError(f"the text is longer than {MAX_BYTES} bytes")
        with self.opened(path) as (folder, name):
            draft = f".{os.urandom(8).hex()}.draft"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(draft, flags, 0o666, dir_fd=folder), "wb") as file:
                file.write(data)
            try:
                # Replaces a link itself, never what it points to.
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(draft, dir_fd=folder)
                raise
        return len(data)

    def delete(self, path: str) -> None:
        """Delete one file, or a link itself."""
        with self.opened(path) as (folder, name):
            os.unlink(name, dir_fd=folder)


def parts_of(path: str) -> tuple[str, ...]:
    """Split a path that stays in the folder into its names; raise ToolError for any other."""
    parts = PurePosixPath(path).parts
    if not parts or "\0" in path or path.startswith("/") or ".." in parts:
        raise ToolError(f"{path!r} is not a path inside the folder")
    return parts


@dataclass
class Approval:
    """What the person is asked to fill in."""

    approve: bool


def files_server(root: str, *, allow_delete: bool = False) -> Server:
    """Make a server for the folder `root`."""
    folder = Folder(root)
    server = Server(
        "files", authorizer=authorizer(allow_delete=allow_delete), authorizer_source="configured"
    )

    @server.tool(read_only=True)
    def list_files() -> str:
        """List the files in the folder."""
        return "\n".join(folder.files()) or "(no files)"

    @server.tool(read_only=True)
    def read_file(path: str) -> str:
        """Read a text file in the folder."""
        return folder.read(path)

    @server.tool(destructive=True)
    def write_file(
        path: str,
        text: str,
        approval: Annotated[Approval, Ask(WRITE)],
    ) -> str:
        """Write a text file in the folder. A person is asked first."""
        if not approval.approve:
            raise ToolError("not written: the person did not approve")
        return f"wrote {path} ({folder.write(path, text)} bytes)"

    @server.tool(destructive=True)
    def delete_file(path: str, approval: Annotated[Approval, Ask(DELETE)]) -> str:
        """Delete a file in the folder. A person is asked first."""
        if not approval.approve:
            raise ToolError("not deleted: the person did not approve")
        folder.delete(path)
        return f"deleted {path}"

    return server


def authorizer(*, allow_delete: bool) -> Authorizer:
    """Make the function that decides about every call, before anybody is asked anything."""

    @nonblocking
    def decide(
        name: str, arguments: Mapping[str, object], context: AuthorizationContext
    ) -> Decision:
        if name == "delete_file" and not allow_delete:
            return deny("deleting is switched off on this server")
        path = arguments.get("path")
        if isinstance(path, str):
            try:
                parts_of(path)  # nobody is bothered about a path that is refused anyway
            except ToolError as error:
                return deny(str(error))
        return allow()

    return decide


def server() -> Server:
    """Make the server from the environment, for `raxol-mcp serve`."""
    root = os.environ.get("FILES_FOLDER")
    if root is None:
        raise ConfigurationError("set FILES_FOLDER to the folder to serve")
    return files_server(root, allow_delete=os.environ.get("FILES_ALLOW_DELETE") == "1")


def main() -> None:
    """Serve the folder named on the command line."""
    parser = argparse.ArgumentParser(description="Serve the text files of one folder over stdio.")
    parser.add_argument("folder")
    parser.add_argument("--allow-delete", action="store_true")
    options = parser.parse_args()
    asyncio.run(serve_stdio(files_server(options.folder, allow_delete=options.allow_delete)))


if __name__ == "__main__":
    main()
