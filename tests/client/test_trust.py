"""client/trust.py: what the user allowed, by its content and its place."""

import json
import os
import pwd
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from raxol_mcp.client.config import Config, load
from raxol_mcp.client.trust import MAX_ALLOWED, NotTrusted, Standing, TrustState, TrustStore
from raxol_mcp.errors import ConfigurationError, Reason

ENTRY = {"command": "${CANARY}", "env": {"TOKEN": "${SECRET}"}}


class Forbidden(Mapping[str, str]):
    """An environment that nobody may look at."""

    def __getitem__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name} is read")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the variables are listed")

    def __len__(self) -> NoReturn:
        raise AssertionError("the variables are counted")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def store(home: Path) -> TrustStore:
    return TrustStore(home / ".config" / "raxol-mcp")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "project" / ".mcp.json")


def written(path: Path, entry: object = ENTRY) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": {"a": entry, "b": {}}}), "utf-8")
    return path


def kept(home: Path) -> Path:
    return home / ".config" / "raxol-mcp" / "trusted.json"


def test_a_file_is_trusted_once_the_user_has_allowed_it(
    store: TrustStore, file: Path, home: Path
) -> None:
    """MCP 2026-07-28 security best practices; BC-151: nothing before explicit approval."""
    config = load(file)
    assert store.state(config) == Standing(TrustState.NEVER, "it has never been allowed")
    assert not kept(home).exists()
    store.allow(config)
    assert store.state(config) == Standing(TrustState.ALLOWED, "you allowed it as it is")
    assert store.trusted(config).config is config
    assert TrustStore(kept(home).parent).state(load(file)).allowed
    assert store.allowed_paths() == [config.path]


def test_a_file_that_changed_is_asked_about_again(store: TrustStore, file: Path) -> None:
    """K28, BC-151: a change asks again; so does the way back."""
    first = load(file)
    store.allow(first)
    second = load(written(file, {"command": "rm", "args": ["-rf", "/"]}))
    assert store.state(second) == Standing(
        TrustState.CHANGED, "it has changed since it was allowed"
    )
    assert store.state(first).allowed  # what was read before is what was allowed
    store.allow(second)
    assert store.state(second).allowed
    assert store.state(first).state is TrustState.CHANGED


def test_one_space_is_a_change(store: TrustStore, file: Path) -> None:
    """ours: no judgement about what matters, that a change could be made to pass."""
    store.allow(load(file))
    file.write_bytes(file.read_bytes() + b" ")
    assert store.state(load(file)).state is TrustState.CHANGED


def test_a_copy_elsewhere_is_another_file(store: TrustStore, file: Path, tmp_path: Path) -> None:
    """ours: relative paths in it mean something else there."""
    store.allow(load(file))
    copy = tmp_path / "copy.json"
    copy.write_bytes(file.read_bytes())
    assert store.state(load(copy)).state is TrustState.NEVER
    link = tmp_path / "link.json"
    link.symlink_to(file)
    assert store.state(load(link)).allowed  # the same file, by another way


def test_what_was_shown_is_what_is_allowed(store: TrustStore, file: Path) -> None:
    """ours: exchanged while the user reads, the file is not allowed by that yes."""
    shown = load(file)
    written(file, {"command": "evil"})
    store.allow(shown)
    assert store.state(load(file)).state is TrustState.CHANGED


def test_before_that_nothing_is_started_and_no_variable_is_read(
    store: TrustStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ours; BC-151 must not: anything on "list servers" or "validate config"."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something is started")

    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    config = load(file)
    [entry] = store.entries(config, Forbidden())
    assert (entry.name, entry.spec) == ("a", None)
    assert entry.reason == Reason("blocked", "not_trusted")
    assert "it has never been allowed" in entry.reason.text
    with pytest.raises(NotTrusted, match=r"raxol-mcp trust '.*mcp\.json'") as caught:
        store.trusted(config)
    assert caught.value.standing.state is TrustState.NEVER
    assert caught.value.tag == "blocked"
    assert caught.value.reason == Reason("blocked", "not_trusted")


def test_after_that_its_servers_are_there(store: TrustStore, file: Path) -> None:
    config = load(file)
    store.allow(config)
    a, b = store.entries(config, {"CANARY": "cat", "SECRET": "s"})
    assert a.spec is not None
    assert (a.spec.command, a.spec.env) == ("cat", (("TOKEN", "s"),))
    assert b.reason == Reason("invalid_spec")


def test_what_was_allowed_can_be_revoked(store: TrustStore, file: Path, home: Path) -> None:
    config = load(file)
    assert store.revoke(file) is False
    assert not kept(home).exists()
    store.allow(config)
    link = file.with_name("link")
    link.symlink_to(file)
    assert store.revoke(link) is True
    assert store.state(config).state is TrustState.NEVER
    store.allow(config)
    file.unlink()
    assert store.revoke(file) is True
    assert store.revoke(file) is False
    assert store.revoke(os.fsdecode(b"/\xff")) is False


def test_the_store_is_its_owners_alone(store: TrustStore, file: Path, home: Path) -> None:
    """ours: 0600 in 0700, digests and places and nothing of the content."""
    store.allow(load(file))
    assert stat.S_IMODE(kept(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(kept(home).parent.stat().st_mode) == 0o700
    assert json.loads(kept(home).read_bytes()) == {
        "version": 1,
        "allowed": {load(file).path: load(file).digest},
    }


def by_group(path: Path) -> None:
    path.chmod(0o660)


def by_all(path: Path) -> None:
    path.chmod(0o606)


def folder_by_group(path: Path) -> None:
    path.parent.chmod(0o770)


def above_by_all(path: Path) -> None:
    path.parent.parent.chmod(0o777)


def through_a_link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to(path.with_name("other"))


def garbage(path: Path) -> None:
    path.write_bytes(b"{")


def another_version(path: Path) -> None:
    path.write_text(path.read_text("utf-8").replace('"version": 1', '"version": 2'), "utf-8")


def no_digests(path: Path) -> None:
    path.write_text('{"version": 1, "allowed": {"/x": 1}}', "utf-8")


def twice(path: Path) -> None:
    path.write_text('{"version": 1, "allowed": {}, "allowed": {}}', "utf-8")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (by_group, "others can write to"),
        (by_all, "others can write to"),
        (folder_by_group, "others can write to"),
        (above_by_all, "others can write to"),
        (through_a_link, "is a link"),
        (garbage, "trusted.json is not understood; remove it to begin anew"),
        (another_version, "is not understood"),
        (no_digests, "is not understood"),
        (twice, "is not understood"),
    ],
)
def test_a_store_that_others_may_have_written_is_not_believed(
    store: TrustStore, file: Path, home: Path, spoil: Callable[[Path], None], why: str
) -> None:
    """ours: ignored with a reason, and never replaced by itself."""
    config = load(file)
    store.allow(config)
    spoil(kept(home))
    before = kept(home).read_bytes()
    standing = store.state(config)
    assert standing.state is TrustState.NEVER
    assert standing.text.startswith("what you allowed is not believed: ")
    assert why in standing.text
    with pytest.raises(ConfigurationError, match=why):
        store.allow(config)
    with pytest.raises(ConfigurationError, match=why):
        store.revoke(file)
    assert kept(home).read_bytes() == before


def test_a_store_of_another_user_is_not_believed(file: Path, home: Path) -> None:
    """ours: as with `sudo`, where HOME is still the other's."""
    config = load(file)
    TrustStore(kept(home).parent).allow(config)
    other = TrustStore(kept(home).parent, user=os.geteuid() + 1)
    assert "belongs to somebody else" in other.state(config).text
    assert not other.state(config).allowed


def test_without_a_home_nothing_is_trusted(file: Path) -> None:
    """ours: never another place that happens to be writable."""
    store = TrustStore(None)
    config = load(file)
    assert store.state(config).state is TrustState.NEVER
    assert "no home folder" in store.state(config).text
    assert (store.own_path, store.allowed_paths(), store.revoke(file)) == (None, [], False)
    assert repr(store) == "TrustStore(None)"
    with pytest.raises(ConfigurationError, match="set HOME or XDG_CONFIG_HOME"):
        store.allow(config)


def test_there_is_a_bound_on_what_is_kept(
    store: TrustStore, file: Path, home: Path, tmp_path: Path
) -> None:
    """K12: the one allowed longest ago makes room, and has to be allowed again."""
    first = load(file)
    store.allow(first)
    content = json.loads(kept(home).read_bytes())
    content["allowed"] |= {f"/{number}": "0" for number in range(MAX_ALLOWED - 1)}
    kept(home).write_text(json.dumps(content), "utf-8")
    store.allow(first)  # again: now it is the newest
    second = load(written(tmp_path / "second.json"))
    store.allow(second)
    paths = store.allowed_paths()
    assert len(paths) == MAX_ALLOWED
    assert paths[-2:] == [first.path, second.path]
    assert "/0" not in paths
    assert "/1" in paths


# -- the user's own file


def own(store: TrustStore) -> Path:
    assert store.own_path is not None
    path = Path(store.own_path)
    path.parent.parent.mkdir(mode=0o700)
    path.parent.mkdir(mode=0o700)
    written(path).chmod(0o600)
    return path


def test_the_users_own_file_needs_no_permission(store: TrustStore, home: Path) -> None:
    """ours: who can write it can write the store as well."""
    config = load(own(store))
    assert config.path == str(kept(home).with_name("mcp.json").resolve())
    assert store.state(config) == Standing(TrustState.ALLOWED, "it is your own file")
    assert not kept(home).exists()


def test_by_its_place_alone_no_file_is_the_users_own(store: TrustStore, file: Path) -> None:
    """ours: it is judged like the store; any other file of that folder is none."""
    path = own(store)
    other = written(path.with_name("other.json"))
    assert store.state(load(other)).state is TrustState.NEVER
    path.chmod(0o620)
    assert store.state(load(path)).state is TrustState.NEVER
    path.chmod(0o600)
    path.parent.chmod(0o777)
    assert store.state(load(path)).state is TrustState.NEVER
    path.parent.chmod(0o700)
    assert store.state(load(path)).allowed
    assert not TrustStore(path.parent, user=os.geteuid() + 1).state(load(path)).allowed
    path.unlink()
    path.symlink_to(file)  # the project's file, by a link
    assert store.state(load(path)).state is TrustState.NEVER


# -- where the store is


def folder_of(environ: dict[str, str]) -> str | None:
    own_path = TrustStore.of_user(environ).own_path
    return None if own_path is None else os.path.dirname(own_path)


def test_the_store_is_in_the_users_configuration_folder(home: Path, tmp_path: Path) -> None:
    """XDG base directories 0.8: a relative path is to be ignored."""
    mine = str(home.resolve() / ".config" / "raxol-mcp")
    configured = str(tmp_path.resolve() / "xdg")
    assert folder_of({"HOME": str(home)}) == mine
    assert folder_of({"HOME": str(home), "XDG_CONFIG_HOME": ""}) == mine
    assert folder_of({"HOME": str(home), "XDG_CONFIG_HOME": "relative"}) == mine
    assert (
        folder_of({"HOME": str(home), "XDG_CONFIG_HOME": configured}) == f"{configured}/raxol-mcp"
    )
    assert folder_of({"HOME": str(home / "none")}) is None
    assert folder_of({"HOME": "relative"}) is None


def test_without_a_variable_the_home_of_record_counts(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = pwd.getpwuid(os.geteuid())

    def found(_: int) -> pwd.struct_passwd:
        return pwd.struct_passwd([*me[:5], str(home), *me[6:]])

    def unknown(_: int) -> pwd.struct_passwd:
        raise KeyError("no such user")

    monkeypatch.setattr(pwd, "getpwuid", found)
    assert folder_of({}) == str(home.resolve() / ".config" / "raxol-mcp")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert folder_of({}) is None


def test_by_default_it_is_the_store_of_who_runs_this(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    assert repr(TrustStore.of_user()) == f"TrustStore('{home.resolve()}/.config/raxol-mcp')"


def test_reasons_are_one_visible_line(tmp_path: Path, home: Path) -> None:
    """K26: the path of a file is chosen by whoever made the folder."""
    folder = tmp_path / "x\x1b[2J\n\u202e"
    config: Config = load(written(folder / ".mcp.json"))
    with pytest.raises(NotTrusted) as caught:
        TrustStore(home / "none").trusted(config)
    assert str(caught.value).isprintable()
    assert str(caught.value).isascii()
