"""transports/child_process.py: what is started is exactly what was asked for, or nothing."""

import os
import sys
from pathlib import Path

import pytest

from raxol_mcp.errors import Reason
from raxol_mcp.transports.child_process import Program, start
from raxol_mcp.transports.link import LinkFailed


def program(command: str, *args: str, cwd: str | None = None, **env: str) -> Program:
    """Return what to start."""
    return Program(
        command=command, args=args, env=env, cwd=cwd, inherit_env=True, drop_env=frozenset()
    )


def failure(what: Program, parent: dict[str, str] | None = None) -> Reason:
    """Return why nothing was started, and see that nothing was left."""
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(LinkFailed) as caught:
        start(what, parent or {"PATH": "/bin:/usr/bin"})
    assert sorted(os.listdir("/proc/self/fd")) == before
    return caught.value.reason


def output(what: Program, parent: dict[str, str] | None = None) -> bytes:
    """Start a program that ends by itself and return what it wrote to stdout."""
    child = start(what, parent or {"PATH": "/bin:/usr/bin"})
    child.process.wait()
    for fd in (child.stdin_fd, child.stderr_fd):
        os.close(fd)
    with open(child.stdout_fd, "rb") as file:
        return file.read()


def script(path: Path, text: str) -> Path:
    """Write a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_command_that_does_not_exist() -> None:
    """client check: `spawn_failed enoent`, at once."""
    reason = failure(program("no-such-command-anywhere"))
    assert reason.path == ("spawn_failed", "enoent")
    assert reason.text == "no-such-command-anywhere is not on the PATH"
    reason = failure(program("/no/such/file"))
    assert reason.path == ("spawn_failed", "enoent")
    assert reason.text == "/no/such/file cannot be started: No such file or directory"
    reason = failure(program(""))
    assert reason.path == ("spawn_failed", "enoent")
    assert reason.text == "an empty command is not on the PATH"


def test_a_file_that_cannot_be_executed(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    assert failure(program(str(tmp_path / "plain"))).detail == "eacces"
    assert failure(program("plain", PATH=str(tmp_path))).detail == "eacces"
    assert failure(program(str(tmp_path))).detail == "eacces"
    (tmp_path / "plain").chmod(0o755)
    assert failure(program("plain", PATH=str(tmp_path))).detail == "enoexec"


def test_a_script_whose_interpreter_does_not_exist(tmp_path: Path) -> None:
    script(tmp_path / "server", "").write_text("#!/no/such/interpreter\n")
    reason = failure(program("server", PATH=str(tmp_path)))
    assert reason.path == ("spawn_failed", "enoent")
    assert reason.text == "server cannot be started: No such file or directory"


def test_a_working_directory_that_does_not_exist(tmp_path: Path) -> None:
    reason = failure(program("true", cwd=str(tmp_path / "none\x1b")))
    assert reason.path == ("spawn_failed", "enoent")
    assert reason.text.startswith("the working directory ")
    assert reason.text.endswith("none\\x1b cannot be used: No such file or directory")


@pytest.mark.parametrize(
    "what",
    [
        program("true", "se\0cret"),
        program("/bin/tr\0ue"),
        program("true", "se\ud800cret"),
        program("true", NAME="se\0cret"),
        program("true", **{"NA=ME": "secret"}),
    ],
)
def test_what_no_program_can_be_given(what: Program) -> None:
    """ours: refused with a reason, and the reason shows no argument and no value."""
    reason = failure(what)
    assert reason.path == ("spawn_failed", "einval")
    assert "cret" not in reason.text


def test_no_descriptor_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe", full)
    assert failure(program("true")).path == ("spawn_failed", "emfile")


def test_an_error_without_a_number_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> tuple[int, int]:
        raise OSError

    monkeypatch.setattr(os, "pipe", fails)
    assert str(failure(program("true"))) == "spawn_failed unknown (true cannot be started: unknown)"


def test_windows_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(LinkFailed) as caught:
        start(program("true"), {})
    monkeypatch.undo()
    assert caught.value.reason.path == ("spawn_failed", "not_supported")


def test_no_shell_sees_the_arguments(tmp_path: Path) -> None:
    """CVE-2026-30623: a string of the configuration was run by a shell."""
    args = [
        "; touch pwned",
        "$(touch pwned)",
        "`id`",
        "a b",
        "",
        '--x="q"',
        "%PATH%",
        "*",
        "é",
        "\n",
    ]
    shows = "import sys; print(ascii(sys.argv[1:]))"
    written = output(program(sys.executable, "-ISc", shows, *args, cwd=str(tmp_path)))
    assert written.decode().strip() == ascii(args)
    assert list(tmp_path.iterdir()) == []


def test_arguments_that_are_no_text_arrive_byte_for_byte() -> None:
    """ours: a path may hold any bytes, and Python has them as lone surrogates."""
    shows = "import os, sys; os.write(1, os.fsencode(sys.argv[1]))"
    assert output(program(sys.executable, "-ISc", shows, "a\udcffb")) == b"a\xffb"


def test_the_command_is_its_own_first_argument_as_it_was_given(tmp_path: Path) -> None:
    script(tmp_path / "shows", 'echo "$0"')
    assert output(program("shows", PATH=f"{tmp_path}:/bin")) == f"{tmp_path}/shows\n".encode()
    (tmp_path / "argv0").symlink_to("/bin/sh")
    written = output(program("argv0", "-c", "cat /proc/$$/cmdline", PATH=f"{tmp_path}:/bin"))
    assert written.split(b"\0")[0] == b"argv0"


def test_the_command_is_looked_up_on_the_path_the_child_sees(tmp_path: Path) -> None:
    script(tmp_path / "one" / "which", "echo one")
    script(tmp_path / "two" / "which", "echo two")
    (tmp_path / "three" / "which").mkdir(parents=True)
    parent = {"PATH": f"{tmp_path}/three:{tmp_path}/one"}
    assert output(program("which"), parent) == b"one\n"
    assert output(program("which", PATH=f"{tmp_path}/two"), parent) == b"two\n"


def test_a_bare_name_is_never_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ours: a server must not be replaced by a file of the project that is looked at."""
    script(tmp_path / "server", "echo planted")
    script(tmp_path / "sub" / "server", "echo planted")
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", "/bin:", ":/bin", "/bin::/usr/bin", "sub", "./sub"):
        assert failure(program("server", PATH=path)).detail == "enoent"
        assert failure(program("server"), {"PATH": path}).detail == "enoent"


def test_a_command_with_a_slash_is_found_from_the_childs_working_directory(
    tmp_path: Path,
) -> None:
    script(tmp_path / "bin" / "server", "pwd")
    assert output(program("bin/server", cwd=str(tmp_path))) == f"{tmp_path}\n".encode()
    assert failure(program("bin/server")).detail == "enoent"


def test_without_a_path_the_systems_own_is_used() -> None:
    assert output(program("echo", "x"), {"HOME": "/"}) == b"x\n"
