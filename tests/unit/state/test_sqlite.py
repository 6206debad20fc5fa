"""The SQLite file: who may read it, what is refused at construction, and its clock."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_captcha_qa.engine.store import Busy, Granted
from pytest_captcha_qa.errors import StoreUnavailable
from pytest_captcha_qa.model.attempt import Fingerprint
from pytest_captcha_qa.model.policy import KeyTimes
from pytest_captcha_qa.state import database
from pytest_captcha_qa.state.database import Database
from pytest_captcha_qa.state.sqlite import SqliteLimits, SqliteStore, default_path

KEY = "5e" * 32
FORM = Fingerprint("signup")
TIMES = KeyTimes(lease=30, renew=10, http=30, solve=300, redelivery=90, keep=110)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def put_folder(path: Path) -> None:
    path.mkdir()


def put_text(path: Path) -> None:
    path.write_text("this is no database, only some text " * 200)


def put_foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def put_newer_store(path: Path) -> None:
    SqliteStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def put_damaged_store(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(50):
        store.claim(f"{number:064x}", FORM, "a", times=TIMES)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_file_and_folder_belong_to_their_user_only_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "captcha-qa" / "staging.sqlite3"
    store = SqliteStore(path)
    store.claim(KEY, FORM, "a", times=TIMES)
    assert mode(path.parent) == 0o700
    assert {each.name: mode(each) for each in path.parent.iterdir()} == {
        "staging.sqlite3": 0o600,
        "staging.sqlite3-wal": 0o600,
        "staging.sqlite3-shm": 0o600,
    }
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    path.touch(0o644)
    SqliteStore(path).close()
    assert mode(path) == 0o600


@pytest.mark.parametrize(
    ("put", "sentence"),
    [
        (put_folder, "is a folder or device, not a file; choose another path"),
        (put_text, "is damaged or no store at all; delete it"),
        (put_foreign_database, "is a database of another program; choose another path"),
        (put_newer_store, "was written by a newer version of captcha-qa; update"),
        (put_damaged_store, "is damaged or no store at all; delete it"),
    ],
)
def test_what_is_no_store_is_refused_at_construction_with_its_path(
    tmp_path: Path, put: Callable[[Path], None], sentence: str
) -> None:
    path = tmp_path / "keys.sqlite3"
    put(path)
    with pytest.raises(StoreUnavailable) as refused:
        SqliteStore(path)
    assert str(path) in str(refused.value)
    assert sentence in str(refused.value)


def test_a_file_in_place_of_the_folder_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(StoreUnavailable, match=r"cannot be created: .*choose a path in a folder you can write"):
        SqliteStore(tmp_path / "cache" / "keys.sqlite3")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere")
def test_an_unwritable_folder_is_refused_in_words(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreUnavailable, match="cannot be created: Permission denied"):
        SqliteStore(tmp_path / "keys.sqlite3")


def test_a_store_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.sqlite3"
    path.touch(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1, raising=False)
    with pytest.raises(StoreUnavailable, match="belongs to another user"):
        SqliteStore(path)


def test_a_network_file_system_is_refused_before_anything_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "network_file_system", lambda path: "nfs4")
    with pytest.raises(StoreUnavailable, match=r"network file system \(nfs4\)"):
        SqliteStore(tmp_path / "folder" / "keys.sqlite3")
    assert not list(tmp_path.iterdir())


FULL_DISK = """
import resource, sys
from pathlib import Path
from pytest_captcha_qa.errors import StoreUnavailable
from pytest_captcha_qa.state.sqlite import SqliteStore
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    SqliteStore(Path(sys.argv[1]))
except StoreUnavailable as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on file sizes")
@pytest.mark.parametrize("size", [0, 4096])
def test_a_full_disk_is_told_at_construction(tmp_path: Path, size: int) -> None:
    path = tmp_path / "keys.sqlite3"
    command = [sys.executable, "-c", FULL_DISK, str(path), str(size)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"the state store {path} cannot be written" in told
    assert "free space on its disk" in told


def test_a_file_locked_for_too_long_is_told_in_words(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    store = Database(path, busy_timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with (
        pytest.raises(StoreUnavailable, match=r"was locked by another process for 0\.05 s"),
        store.transaction(),
    ):
        pytest.fail("the lock was not seen")
    other.execute("ROLLBACK")
    other.close()
    with store.transaction() as (_, now):
        assert now > 0
    store.close()


def test_a_file_that_is_locked_for_a_while_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    store = Database(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    soon = threading.Timer(0.4, other.execute, ("ROLLBACK",))
    soon.start()
    with store.transaction() as (connection, _):
        assert connection.in_transaction
    soon.join()
    other.close()
    store.close()


def write_row(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    "row",
    [
        '{"state": "leased"',
        "",
        "null",
        "[]",
        '"hidden"',
        "[" * 100_000,
        "9" * 5000,
        '{"state": "hidden"}',
        '{"state": "leased", "generation": 1}',
        '{"state": "ready", "token": {"solution": "hidden"}}',
        '{"state": "leased", "request": 7}',
        b'{"state": "\xff hidden"}',
    ],
)
def test_a_key_that_cannot_be_read_is_told_with_the_path_and_what_to_do(tmp_path: Path, row: object) -> None:
    path = tmp_path / "keys.sqlite3"
    store = SqliteStore(path)
    write_row(path, "INSERT INTO keys VALUES (?, CAST(? AS TEXT), 9e18)", KEY, row)
    with pytest.raises(StoreUnavailable, match="holds an entry that cannot be read; delete the file") as told:
        store.claim(KEY, FORM, "a", times=TIMES)
    assert str(path) in str(told.value)
    assert "hidden" not in str(told.value)
    assert told.value.__context__ is None
    assert isinstance(store.claim("0" * 64, FORM, "a", times=TIMES), Granted)
    store.close()


@pytest.mark.parametrize(("value", "until"), [("{", 9e18), ("", 9e18), (b"\xff", 9e18), ("1", "soon")])
def test_a_counter_that_cannot_be_read_is_told_too(tmp_path: Path, value: object, until: object) -> None:
    path = tmp_path / "keys.sqlite3"
    limits = SqliteLimits(path)
    write_row(path, "INSERT INTO cells VALUES ('counter:run', CAST(? AS TEXT), ?)", value, until)
    with pytest.raises(StoreUnavailable, match="holds an entry that cannot be read; delete the file"):
        limits.count("run")
    limits.close()


def test_a_store_removed_under_way_is_told_once_and_then_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    store = SqliteStore(path)
    store.claim(KEY, FORM, "a", times=TIMES)
    for each in tmp_path.iterdir():
        each.unlink()
    with pytest.raises(StoreUnavailable, match="was removed or replaced while in use"):
        store.claim(KEY, FORM, "b", times=TIMES)
    assert isinstance(store.claim(KEY, FORM, "b", times=TIMES), Granted)
    assert isinstance(SqliteStore(path).claim(KEY, FORM, "c", times=TIMES), Busy)
    store.close()


def test_a_transaction_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    store = Database(tmp_path / "keys.sqlite3")

    def interrupted() -> None:
        with store.transaction() as (connection, _):
            connection.execute("INSERT INTO cells VALUES ('x', '1', 9e18)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with store.transaction() as (connection, _):
        assert connection.execute("SELECT count(*) FROM cells").fetchone() == (0,)
    store.close()


def test_the_clock_goes_on_when_the_machines_is_set_back(tmp_path: Path) -> None:
    wall = [1_000_000.0]
    limits = SqliteLimits(tmp_path / "keys.sqlite3", clock=lambda: wall[0])
    limits.raise_flag("pause", "x", seconds=60)
    wall[0] -= 5_000
    assert limits.flag("pause") == "x"
    wall[0] += 61
    assert limits.flag("pause") is None
    limits.close()


def test_a_restarted_process_keeps_the_clock_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    first = SqliteStore(path, clock=lambda: 2_000_000.0)
    first.claim(KEY, FORM, "a", times=TIMES)
    first.close()
    second = SqliteStore(path, clock=lambda: 1_000_000.0)
    assert isinstance(second.claim(KEY, FORM, "b", times=TIMES), Busy)
    second.close()


def test_keys_survive_the_process_that_wrote_them(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    first = SqliteStore(path)
    granted = first.claim(KEY, FORM, "a", times=TIMES)
    first.close()
    second = SqliteStore(path)
    again = second.claim(KEY, FORM, "a", times=TIMES)
    assert isinstance(granted, Granted)
    assert again == granted
    second.close()


def test_stores_and_limits_opened_at_once_share_one_new_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    gate = threading.Barrier(8)
    answers: list[object] = []

    def opened(number: int) -> None:
        gate.wait(30)
        limits, store = SqliteLimits(path), SqliteStore(path)
        limits.add("opened", 1, limit=None, seconds=600)
        answers.append(type(store.claim(KEY, FORM, f"owner {number}", times=TIMES)))
        limits.close()
        store.close()

    threads = [threading.Thread(target=opened, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answer.__name__ for answer in answers if isinstance(answer, type)) == ["Busy"] * 7 + ["Granted"]
    limits = SqliteLimits(path)
    assert limits.count("opened") == 8
    limits.close()


def test_the_default_path_keeps_any_name_inside_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["staging", "../../etc/passwd", "a/b", "a b"]
    paths = [default_path(name) for name in names]
    assert {path.parent for path in paths} == {paths[0].parent}
    assert paths[0].parent.name == "captcha-qa"
    assert len(set(paths)) == len(names)
