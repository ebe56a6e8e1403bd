import gc
import os
from pathlib import Path

import anyio
import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio"


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """No child, not even a zombie, and no unclosed pipe or socket (whose warning is an error)."""
    before = children()
    yield
    gc.collect()
    assert children() - before == set()


class Inbox:
    """What arrived on a link, and a way to wait for it."""

    def __init__(self, link):
        self.items = []
        self._changed = anyio.Event()
        link.receive = self._receive

    def _receive(self, incoming):
        self.items.append(incoming)
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def values(self):
        return [item.value for item in self.items if item.value is not None]

    @property
    def problems(self):
        return [item.problem for item in self.items if item.problem]

    async def until(self, wanted, seconds=15):
        with anyio.fail_after(seconds):
            while not wanted(self):
                await self._changed.wait()

    async def count(self, number):
        await self.until(lambda box: len(box.items) >= number)

    async def end(self):
        await self.until(lambda box: any(item.end for item in box.items))


@pytest.fixture
def inbox():
    return Inbox
