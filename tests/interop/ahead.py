"""Runs the slow part of the selected tests ahead, several at once; each test then waits for its own result only."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
AT_ONCE = 2
"""These tests mostly wait: for pauses, for what must not come, for processes."""


SECONDS = 240
"""How long a client of others may take."""


def printed(words: Sequence[str], env: Mapping[str, str]) -> Any:
    """The JSON that a program prints on its last line.

    Raises:
        AssertionError: It failed; with what it wrote.
    """
    done = subprocess.run(
        words,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr[:2000]}\n...\n{done.stderr[-2000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])


class Ahead:
    """Results that are being made.

    Args:
        work: Makes one; it may skip or fail, which its test then does.
        keys: Arguments of each.
    """

    def __init__(self, work: Callable[..., Any], keys: Iterable[tuple[str, ...]]) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._made: dict[tuple[str, ...], Future[Any]] = {key: self._pool.submit(work, *key) for key in keys}

    def __getitem__(self, key: tuple[str, ...]) -> Any:
        return self._made[key].result()

    def close(self) -> None:
        """Forgets what nobody waits for."""
        self._pool.shutdown(cancel_futures=True)


def selected(request: pytest.FixtureRequest, test: str, *names: str) -> list[tuple[str, ...]]:
    """The arguments of a parametrized test that will run, by the names of its parameters."""
    found = [item for item in request.session.items if getattr(item, "originalname", "") == test]
    return [tuple(item.callspec.params[name] for name in names) for item in found]  # type: ignore[attr-defined]


def need(*paths: Path) -> None:
    """Skips where something of an environment is missing, with a word; continuous integration must have it all."""
    for path in paths:
        if not path.exists():
            word = f"{path} is missing: run `make envs` (it needs node and npm)"
            pytest.fail(word) if IN_CI else pytest.skip(word)
