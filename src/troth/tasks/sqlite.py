"""A store in a SQLite file: what it keeps survives the process.

A row that cannot be read costs its own task only; see `troth.tasks.rows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from troth.tasks.database import Database
from troth.tasks.model import Outcome, StoreError, Task
from troth.tasks.rows import UNREADABLE, Rows
from troth.tasks.store import bare, page_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

    from troth.tasks.model import Page

VERSION: Final = 1
SCHEMA: Final = (
    """CREATE TABLE tasks (
        id TEXT PRIMARY KEY, owner TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL,
        ended INTEGER NOT NULL, version INTEGER NOT NULL, task BLOB NOT NULL, outcome BLOB
    )""",
    "CREATE INDEX by_owner ON tasks (owner, created, id)",
    "CREATE INDEX by_end ON tasks (expires)",
    "CREATE INDEX unfinished ON tasks (id) WHERE NOT ended",
)

_encode = msgspec.json.Encoder().encode
_task = msgspec.json.Decoder(Task).decode
_outcome = msgspec.json.Decoder(Outcome).decode


class SqliteStore:
    """Keeps tasks in a file; several processes may use it at once.

    Args:
        path: The file. Results stand in it as they came, so only its owner may read it (0600).
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, SCHEMA, VERSION)
        self._rows = Rows(path, "task", _task)

    async def create(self, task: Task) -> None:
        """See `Store.create`."""

        def insert(connection: sqlite3.Connection) -> bool:
            cursor = connection.execute(
                "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (task.id, task.owner, task.created, *_changing(task)),
            )
            return cursor.rowcount == 1

        if not await self._database.run(insert):
            raise StoreError(f"there is a task {task.id} already")

    async def get(self, task_id: str) -> Task | None:
        """See `Store.get`."""
        row = await self._database.run(
            lambda connection: connection.execute(
                "SELECT task, outcome FROM tasks WHERE id = ?", (task_id,)
            ).fetchone(),
            write=False,
        )
        try:
            return None if row is None else _joined(*row)
        except UNREADABLE as error:
            raise StoreError(f"{self._database.path}: a task in it is damaged: {error}") from error

    async def update(self, task: Task) -> bool:
        """See `Store.update`."""

        def write(connection: sqlite3.Connection) -> bool:
            cursor = connection.execute(
                "UPDATE tasks SET expires = ?, ended = ?, version = ?, task = ?, outcome = ?"
                " WHERE id = ? AND version = ?",
                (*_changing(task), task.id, task.version - 1),
            )
            return cursor.rowcount == 1

        return await self._database.run(write)

    async def page(self, owner: str, after: tuple[float, str] | None, size: int, now: float) -> Page:
        """See `Store.page`."""
        tasks = await self._list(
            "SELECT rowid, task FROM tasks WHERE owner = ? AND (created, id) > (?, ?) AND (expires > ? OR NOT ended)"
            " ORDER BY created, id LIMIT ?",
            owner,
            *(after or (-1.0, "")),
            now,
            most=size + 1,
        )
        return page_of(tasks, size)

    async def delete(self, task_id: str) -> bool:
        """See `Store.delete`."""
        return await self._database.run(
            lambda connection: connection.execute("DELETE FROM tasks WHERE id = ?", (task_id,)).rowcount == 1
        )

    async def due(self, now: float, most: int) -> Sequence[Task]:
        """See `Store.due`."""
        return await self._list(
            "SELECT rowid, task FROM tasks WHERE expires <= ? ORDER BY expires, id LIMIT ?", now, most=most
        )

    async def unfinished(self, after: str, most: int) -> Sequence[Task]:
        """See `Store.unfinished`."""
        return await self._list(
            "SELECT rowid, task FROM tasks WHERE NOT ended AND id > ? ORDER BY id LIMIT ?", after, most=most
        )

    async def count(self, owner: str | None = None) -> int:
        """See `Store.count`."""

        def count(connection: sqlite3.Connection) -> int:
            if owner is None:
                return connection.execute("SELECT count(*) FROM tasks").fetchone()[0]
            return connection.execute("SELECT count(*) FROM tasks WHERE owner = ?", (owner,)).fetchone()[0]

        return await self._database.run(count, write=False)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._database.close()

    async def _list(self, statement: str, *values: Any, most: int) -> list[Task]:
        """The first tasks, of those that can be read; the last parameter of the statement is how many rows."""

        def read(connection: sqlite3.Connection) -> list[Task]:
            return self._rows.first(most, lambda limit: connection.execute(statement, (*values, limit)).fetchall())

        return await self._database.run(read, write=False)


def _changing(task: Task) -> tuple[float, bool, int, bytes, bytes | None]:
    """The columns that an update writes."""
    outcome = None if task.outcome is None else _encode(task.outcome)
    return task.expires, task.ended, task.version, _encode(bare(task)), outcome


def _joined(task: bytes, outcome: bytes | None) -> Task:
    kept = _task(task)
    return kept if outcome is None else msgspec.structs.replace(kept, outcome=_outcome(outcome))
