"""A SQLite file that only its owner may read, used by one worker thread at a time.

What a transaction wrote is on disk when it returns: the file survives ``kill -9`` and a power cut.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.to_thread

from troth.tasks.model import StoreError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

T = TypeVar("T")

BUSY: Final = 5.0
"""Seconds to wait for another process that writes to the file."""


class Database:
    """One connection to one file. It is opened at the first use, and sqlite3 is imported then.

    Args:
        path: The file; made with mode 0600, in a folder of mode 0700.
        schema: Statements that make its tables.
        version: Version of the schema, from 1; a file of another one is refused.
    """

    def __init__(self, path: Path, schema: Sequence[str], version: int) -> None:
        self.path = path
        self._schema = schema
        self._version = version
        self._connection: sqlite3.Connection | None = None
        self._one = anyio.CapacityLimiter(1)

    async def run(self, work: Callable[[sqlite3.Connection], T], *, write: bool = True) -> T:
        """Does something within one transaction, in the worker thread.

        Args:
            work: Gets the connection; what it raises rolls the transaction back.
            write: Whether it writes. Who only reads neither waits for writers nor lets them wait.

        Raises:
            StoreError: The file cannot be used.
        """
        # A cancelled caller waits until the thread is done, so a transaction happens as a whole or not at all.
        return await anyio.to_thread.run_sync(partial(self._run, work, write), limiter=self._one)

    def _run(self, work: Callable[[sqlite3.Connection], T], write: bool) -> T:
        import sqlite3

        try:
            connection = self._connection or self._open()
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                # A full disk fails the commit, and leaves the transaction open.
                connection.rollback()
                raise
        except (sqlite3.Error, OSError) as error:
            # Of its own kind is what the file holds; a full disk or a lock is an error of operation.
            damaged = type(error) is sqlite3.DatabaseError
            if damaged:
                # Whoever removes the file begins anew without a new process.
                self._close()
            hint = "remove it to begin anew" if damaged else "see to its folder and the space there"
            raise StoreError(f"{self.path}: cannot be used: {error}; {hint}") from error
        return result

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its other files the mode of this one.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            for statement in self._schema:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {self._version}")
        connection.execute("COMMIT")
        if version not in (0, self._version):
            raise StoreError(
                f"{self.path}: is of version {version}, and this program writes version {self._version}; "
                "use the program that wrote it, or remove the file to begin anew"
            )

    async def close(self) -> None:
        """Closes the file. May be called twice."""
        await anyio.to_thread.run_sync(self._close, limiter=self._one)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
