"""client/owned_files.py: a file is believed only when nobody else can have written it."""

import fcntl
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from raxol_mcp.client.owned_files import OwnedFolder, Unsafe

ME = os.geteuid()
SOMEBODY = ME + 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a safe folder in a safe folder; what is above belongs to the system."""
    above = tmp_path / "config"
    above.mkdir(mode=0o700)
    path = above / "own"
    path.mkdir(mode=0o700)
    return path


def read(folder: Path, name: str = "f", *, user: int | None = None) -> bytes | None:
    return OwnedFolder(str(folder), user=user).read(name, max_bytes=10)


def write(folder: Path, content: bytes, name: str = "f") -> None:
    OwnedFolder(str(folder)).update(name, lambda _: content, max_bytes=10)


def left_in(folder: Path) -> list[str]:
    """List what is there besides the lock, which stays."""
    return [path.name for path in folder.iterdir() if path.suffix != ".lock"]


def locked(folder: Path) -> int:
    """Hold the lock, as another program does, until the descriptor is closed."""
    holder = os.open(folder / ".f.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(holder, fcntl.LOCK_EX)
    return holder


def test_a_file_is_written_and_read(folder: Path) -> None:
    assert read(folder) is None
    write(folder, b"one")
    assert read(folder) == b"one"
    seen: list[bytes | None] = []

    def change(content: bytes | None) -> bytes:
        seen.append(content)
        return b"two"

    OwnedFolder(str(folder)).update("f", change, max_bytes=10)
    assert (seen, read(folder)) == ([b"one"], b"two")
    assert left_in(folder) == ["f"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_what_is_made_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    """ours: whatever the umask, 0600 in a folder of 0700 at most."""
    folder = tmp_path / "a" / "b" / "c"
    before = os.umask(umask & 0o077)
    try:
        (tmp_path / "a").mkdir(mode=0o700)
        write(folder, b"x")
        os.umask(umask)
        write(folder, b"y")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "f").stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}
    assert read(folder) == b"y"


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert read(tmp_path / "none" / "none") is None
    assert not OwnedFolder(str(tmp_path / "none")).is_safe()
    assert not (tmp_path / "none").exists()


def shared_folder(folder: Path) -> None:
    folder.chmod(0o770)


def shared_above(folder: Path) -> None:
    folder.parent.chmod(0o707)


def shared_above_with_a_group(folder: Path) -> None:
    folder.parent.chmod(0o770)


def shared_file(folder: Path) -> None:
    (folder / "f").chmod(0o620)


def public_file(folder: Path) -> None:
    (folder / "f").chmod(0o602)


def linked_file(folder: Path) -> None:
    (folder / "f").rename(folder.parent / "f")
    (folder / "f").symlink_to(folder.parent / "f")


def dangling_link(folder: Path) -> None:
    (folder / "f").unlink()
    (folder / "f").symlink_to(folder.parent / "none")


def linked_folder(folder: Path) -> None:
    folder.rename(folder.parent / "other")
    folder.symlink_to(folder.parent / "other")


def folder_for_file(folder: Path) -> None:
    (folder / "f").unlink()
    (folder / "f").mkdir()


def pipe_for_file(folder: Path) -> None:
    (folder / "f").unlink()
    os.mkfifo(folder / "f")


def file_for_folder(folder: Path) -> None:
    folder.rename(folder.parent / "other")
    folder.write_bytes(b"")


def huge_file(folder: Path) -> None:
    (folder / "f").write_bytes(b"x" * 11)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (shared_folder, r"others can write to '.*own': chmod go-w"),
        (shared_above, r"others can write to '.*config': chmod go-w"),
        (shared_above_with_a_group, r"others can write to '.*config': chmod go-w"),
        (shared_file, r"others can write to '.*f': chmod go-w"),
        (public_file, r"others can write to '.*f': chmod go-w"),
        (linked_file, r"own/f' is a link or not open to you"),
        (dangling_link, r"own/f' is a link or not open to you"),
        (linked_folder, r"own' is a link, no folder or not open to you"),
        (file_for_folder, r"own' is a link, no folder or not open to you"),
        (folder_for_file, r"own/f' is not a plain file"),
        (pipe_for_file, r"own/f' is not a plain file"),
        (huge_file, r"own/f' is larger than 10 bytes"),
    ],
)
def test_what_others_may_have_written_is_neither_read_nor_replaced(
    folder: Path, spoil: Callable[[Path], None], why: str
) -> None:
    """ours: who can write it decides what is started."""
    write(folder, b"mine")
    spoil(folder)
    with pytest.raises(Unsafe, match=why):
        read(folder)
    with pytest.raises(Unsafe, match=why):
        write(folder, b"new")
    left = folder.parent / "f"
    assert not left.exists() or left.read_bytes() == b"mine"


def test_what_belongs_to_somebody_else_is_not_believed(folder: Path) -> None:
    """ours: the matrix of owners, seen by another user."""
    write(folder, b"mine")
    with pytest.raises(Unsafe, match="belongs to somebody else"):
        read(folder, user=SOMEBODY)
    assert not OwnedFolder(str(folder), user=SOMEBODY).is_safe()
    assert OwnedFolder(str(folder)).is_safe()


@pytest.mark.parametrize(
    ("owner", "mode", "owns"),
    [
        (ME, 0o100600, True),
        (ME, 0o100644, True),
        (ME, 0o100755, True),
        (ME, 0o100620, False),
        (ME, 0o100602, False),
        (ME, 0o100666, False),
        (SOMEBODY, 0o100600, False),
    ],
)
def test_only_the_owner_may_write(owner: int, mode: int, owns: bool) -> None:
    assert OwnedFolder("/x").owns(owner, mode) is owns


@pytest.mark.skipif(ME != 0, reason="only root can give a file away")
def test_each_part_that_was_given_away_is_noticed(folder: Path) -> None:
    """ours: the file, its folder and what is above."""
    write(folder, b"mine")
    for path in (folder / "f", folder, folder.parent):
        try:
            os.chown(path, 4242, -1)
        except PermissionError:
            pytest.skip("this root may not give files away")
        with pytest.raises(Unsafe, match=rf"{path.name}' belongs to somebody else"):
            read(folder)
        os.chown(path, ME, -1)
    assert read(folder) == b"mine"


def test_a_sticky_folder_may_be_above(folder: Path) -> None:
    """ours: /tmp is everybody's, and what is in it stays its owner's."""
    folder.parent.chmod(0o1777)
    write(folder, b"mine")
    assert read(folder) == b"mine"


def test_a_link_above_is_the_users_own(folder: Path, tmp_path: Path) -> None:
    """ours: `~/.config` may be a link; where it leads is judged."""
    (tmp_path / "link").symlink_to(folder.parent)
    write(tmp_path / "link" / "own", b"mine")
    assert read(folder) == b"mine"
    folder.parent.chmod(0o777)
    with pytest.raises(Unsafe, match="others can write"):
        read(tmp_path / "link" / "own")


def test_a_failed_change_leaves_the_old_content(folder: Path) -> None:
    write(folder, b"old")

    def fail(_: bytes | None) -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        OwnedFolder(str(folder)).update("f", fail, max_bytes=10)
    assert (read(folder), left_in(folder)) == (b"old", ["f"])


@pytest.mark.parametrize("broken", ["fsync", "rename", "fchmod"])
def test_a_failed_write_leaves_the_old_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """ours: a full disk, say."""
    write(folder, b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        with pytest.raises(Unsafe, match=r"own/f' cannot be written: No space left"):
            write(folder, b"new")
    assert (read(folder), left_in(folder)) == (b"old", ["f"])


def test_what_a_dead_writer_left_is_replaced(folder: Path) -> None:
    (folder / ".f.new").symlink_to(folder.parent / "canary")
    write(folder, b"new")
    assert (read(folder), left_in(folder)) == (b"new", ["f"])
    assert not (folder.parent / "canary").exists()


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unsafe, match="cannot be made"):
        write(tmp_path / "file" / "own", b"x")


def test_a_folder_that_goes_away_at_once_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", lambda *_: None)
    with pytest.raises(Unsafe, match="none' cannot be made"):
        write(tmp_path / "none", b"x")


def test_what_the_system_refuses_to_show_is_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ours: doubt is a no, and no traceback."""
    write(folder, b"mine")
    real = os.fstat
    seen: list[int] = []

    def breaks_at_the_file(descriptor: int) -> os.stat_result:
        seen.append(descriptor)
        if len(seen) > 1:
            raise OSError(5, "Input/output error")
        return real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", breaks_at_the_file)
        with pytest.raises(Unsafe, match=r"own/f' cannot be read: Input/output error"):
            read(folder)

    def forbidden(_: str) -> os.stat_result:
        raise OSError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", forbidden)
        with pytest.raises(Unsafe, match=r"config' cannot be looked at: Permission denied"):
            read(folder)


def test_a_writer_that_never_ends_is_not_waited_for_long(folder: Path) -> None:
    """K11."""
    holder = locked(folder)
    try:
        impatient = OwnedFolder(str(folder), lock_patience=0.0)
        with pytest.raises(Unsafe, match=r"another program holds .*own/\.f\.lock"):
            impatient.update("f", lambda _: b"x", max_bytes=10)
        assert impatient.read("f", max_bytes=10) is None
    finally:
        os.close(holder)
    impatient.update("f", lambda _: b"x", max_bytes=10)


def test_a_writer_that_ends_is_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = locked(folder)
    waits: list[float] = []

    def let_go(seconds: float) -> None:
        waits.append(seconds)
        os.close(holder)

    monkeypatch.setattr("time.sleep", let_go)
    write(folder, b"x")
    assert (read(folder), waits) == (b"x", [0.05])


def test_a_file_system_without_locks_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(Unsafe, match="cannot be locked: Operation not supported"):
        write(folder, b"x")


def test_a_lock_that_leads_elsewhere_is_not_taken(folder: Path) -> None:
    (folder / ".f.lock").symlink_to(folder.parent / "canary")
    with pytest.raises(Unsafe, match=r"own/\.f\.lock' cannot be opened"):
        write(folder, b"x")
    assert not (folder.parent / "canary").exists()


def test_writers_at_the_same_time_lose_nothing(folder: Path) -> None:
    """K19: each change sees the one before."""

    def add() -> None:
        mine = OwnedFolder(str(folder), lock_patience=60.0)
        for _ in range(5):
            mine.update("f", lambda content: (content or b"") + b"x", max_bytes=100)

    writers = [threading.Thread(target=add) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert OwnedFolder(str(folder)).read("f", max_bytes=100) == b"x" * 20
