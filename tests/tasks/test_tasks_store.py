"""Stores: both pass all cases; what the file adds."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from store_cases import CASES, later, task

from troth.tasks import Engine, MemoryStore, Requester, SqliteStore, Status, StoreError, Task
from troth.tasks.database import Database
from troth.tasks.engine import LOST

if TYPE_CHECKING:
    from pathlib import Path

    from store_cases import Open

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return MemoryStore if request.param == "memory" else lambda: SqliteStore(tmp_path / "state" / "tasks.sqlite")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_every_store_passes(case: object, opened: Open) -> None:
    await case(opened)  # type: ignore[operator]


async def test_a_file_keeps_tasks_for_the_next_who_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    first = SqliteStore(path)
    await first.create(task())
    await first.close()
    second = SqliteStore(path)
    assert await second.get("one") == task()
    await second.close()


async def test_two_processes_share_a_file_and_one_update_wins(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    first, second = SqliteStore(path), SqliteStore(path)
    await first.create(task())
    assert await second.update(later(task(), message="second"))
    assert not await first.update(later(task(), message="first"))
    found = await first.get("one")
    assert found is not None
    assert found.message == "second"
    await first.close()
    await second.close()


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
async def test_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "state" / "tasks.sqlite")
        await store.create(task())
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "state").iterdir()}
        assert set(modes.values()) == {0o600}, modes
        assert len(modes) == 3
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    finally:
        os.umask(old)
    await store.close()


async def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    path.write_text("this is something else entirely, and longer than a header " * 20)
    with pytest.raises(StoreError, match=r"tasks\.sqlite: cannot be used: .*remove it"):
        await SqliteStore(path).count()
    assert path.read_text().startswith("this is something else")


async def test_a_damaged_file_that_was_removed_is_begun_anew_by_those_who_had_it_open(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    store = SqliteStore(path)
    await store.create(task())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    path.write_bytes(b"\xa5" * path.stat().st_size)
    with pytest.raises(StoreError, match="remove it to begin anew"):
        await store.create(task("another"))
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    await store.create(task("third"))
    assert path.exists()
    await store.close()


async def test_a_file_that_somebody_else_holds_is_not_to_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    database = Database(path, ("CREATE TABLE numbers (n INTEGER)",), 1)
    await database.run(lambda connection: connection.execute("PRAGMA busy_timeout = 0"), write=False)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match="locked") as raised:
            await database.run(lambda connection: connection.execute("INSERT INTO numbers VALUES (1)"))
        assert "remove" not in str(raised.value)
    finally:
        other.close()
    await database.close()


async def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="version 99"):
        await SqliteStore(path).count()


async def test_a_row_that_somebody_damaged_is_said(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    store = SqliteStore(path)
    await store.create(task())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tasks SET task = '{'")
    connection.close()
    with pytest.raises(StoreError, match="is damaged"):
        await store.get("one")
    await store.close()


@pytest.mark.parametrize("damage", ["'{'", "x'ff'", "''", "7", "'{\"id\": 1}'"])
async def test_rows_that_somebody_damaged_cost_their_own_tasks_only(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tasks.sqlite"
    store = SqliteStore(path)
    names = [f"n{number}" for number in range(9)]
    good = ["n3", "n7", "n8"]
    for name in names:
        await store.create(task(name, expires=1.0))
    with sqlite3.connect(path) as connection:
        rows = ", ".join(repr(name) for name in names if name not in good)
        connection.execute(f"UPDATE tasks SET task = {damage} WHERE id IN ({rows})")
    connection.close()
    for _ in range(2):
        for most in (1, 2, 9):
            assert [one.id for one in await store.unfinished("", most)] == good[:most]
            assert [one.id for one in await store.unfinished("n3", most)] == good[1:][:most]
            assert [one.id for one in await store.due(2.0, most)] == good[:most]
        first = await store.page(task().owner, None, 2, 0.0)
        assert [one.id for one in first.tasks] == good[:2]
        second = await store.page(task().owner, first.after, 2, 0.0)
        assert ([one.id for one in second.tasks], second.after) == (good[2:], None)
    told = [record.message for record in caplog.records]
    assert len(told) == 6
    assert told[0].startswith(f"{path}: the task in row 1 is damaged and left out: ")
    # It stays in the file; whoever has its id may know it.
    assert await store.count() == 9
    assert not any(name in words for name in names for words in told)
    await store.close()


async def test_what_is_left_of_a_run_is_looked_after_beside_a_damaged_row(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    store = SqliteStore(path)
    before = Engine(store, run="before")
    tasks = [await before.create(Requester("ann"), "tools/call") for _ in range(3)]
    first = min(one.id for one in tasks if isinstance(one, Task))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tasks SET task = '{' WHERE id = ?", (first,))
    connection.close()
    after = Engine(store, run="after")
    await after.recover()
    states = {one.id: (await after.get(Requester("ann"), one.id)) for one in tasks if one.id != first}
    assert [one.status for one in states.values()] == [Status.FAILED] * 2
    assert await store.count() == 3
    await store.close()


async def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        await SqliteStore(tmp_path / "state" / "tasks.sqlite").count()


async def test_a_full_disk_is_no_reason_to_remove_what_is_kept(tmp_path: Path) -> None:
    database = Database(tmp_path / "any.sqlite", ("CREATE TABLE texts (t TEXT)",), 1)

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 3")
        connection.execute("INSERT INTO texts VALUES (?)", ("x" * 100_000,))

    with pytest.raises(StoreError, match="disk is full; see to its folder and the space there"):
        await database.run(fill)
    await database.close()


async def test_a_transaction_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    database = Database(tmp_path / "any.sqlite", ("CREATE TABLE numbers (n INTEGER)",), 1)

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (1)")
        raise KeyError("half way")

    def count(connection: sqlite3.Connection) -> int:
        return connection.execute("SELECT count(*) FROM numbers").fetchone()[0]

    with pytest.raises(KeyError):
        await database.run(half)
    assert await database.run(count) == 0
    with pytest.raises(StoreError, match="no such table"):
        await database.run(lambda connection: connection.execute("INSERT INTO others VALUES (1)"))
    assert await database.run(count) == 0
    await database.close()


WRITER = """
import sys, anyio
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store_cases import task, later
from troth.tasks import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    number = 0
    while True:
        one = task(f"t{number:06}")
        await store.create(one)
        await store.update(later(one, message="changed"))
        print(one.id, flush=True)
        number += 1

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_what_was_handed_out_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    here = os.path.dirname(__file__)  # noqa: PTH120
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), here], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    said = [writer.stdout.readline().strip() for _ in range(25)]
    writer.send_signal(signal.SIGKILL)
    said += writer.stdout.read().split()
    writer.wait(30)
    writer.stdout.close()
    assert len(said) >= 25
    anyio.run(there, path, said)


async def there(path: Path, names: list[str]) -> None:
    store = SqliteStore(path)
    for name in names:
        found = await store.get(name)
        assert found is not None
        assert (found.status, found.message) == (Status.WORKING, "changed")
    assert {one.id for one in await store.unfinished("", 100_000)} >= set(names)
    await store.close()


RUNNER = """
import sys, anyio
from pathlib import Path
from troth.tasks import Engine, Requester, SqliteStore

async def main():
    engine = Engine(SqliteStore(Path(sys.argv[1])), run="killed")
    for number in range(20):
        task = await engine.create(Requester("ann"), "tools/call", keep="x" if number % 2 else "")
        print(task.id, flush=True)
    print("ready", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_twenty_tasks_of_a_killed_process_are_taken_on_or_failed_with_words(tmp_path: Path) -> None:
    path = tmp_path / "tasks.sqlite"
    with subprocess.Popen([sys.executable, "-c", RUNNER, str(path)], stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        names = []
        while (line := runner.stdout.readline().strip()) not in ("ready", ""):
            names.append(line)
        runner.send_signal(signal.SIGKILL)
    assert len(names) == 20
    anyio.run(recovered, path, names)


async def recovered(path: Path, names: list[str]) -> None:
    store = SqliteStore(path)
    engine, ann = Engine(store), Requester("ann")
    resumed = await engine.recover(resume=lambda task: bool(task.keep))
    assert {task.id for task in resumed} == set(names[1::2])
    for name in names:
        task = await engine.get(ann, name)
        assert isinstance(task, Task)
        if name in names[1::2]:
            assert (task.status, task.run) == (Status.WORKING, engine.run)
        else:
            assert (task.status, task.message) == (Status.FAILED, LOST.message)
    assert len((await engine.page(ann)).tasks) == 20
    await store.close()


def test_sqlite3_is_imported_at_the_first_use_only() -> None:
    code = "import sys; sys.modules.pop('sqlite3', None); import troth.tasks; sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
