"""A link without a wire: the engine audits a Python callable, so that thousands of odd answers cost seconds."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import anyio
import anyio.lowlevel

from troth.audit import engine
from troth.audit.options import Options
from troth.audit.targets import StdioTarget
from troth.audit.wire import connect
from troth.audit.wire.types import Incoming, Limits
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from troth.audit.model import TargetReport

    Server = Callable[[Any], Iterable[Any]]
    """Takes one message; what it yields is sent back, in this order: JSON values, or what a transport would note."""

LIMITS = Limits(start=0.2, method=0.05, settle=0.004, stop=0.1, frames=2_000)
TARGET = StdioTarget(name="memory", command=("memory",))


class MemoryLink:
    """The link to one server; see `troth.audit.wire.types.Link`."""

    transport = "stdio"
    stderr = ""

    def __init__(self, server: Server) -> None:
        self.receive: Callable[[Incoming], None] = lambda _: None
        self.dead = ""
        self._server = server

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        await anyio.lowlevel.checkpoint()
        if self.dead:
            return
        try:
            for answer in self._server(message):
                self.receive(answer if isinstance(answer, Incoming) else Incoming(channel="stdio", value=answer))
        except EOFError:
            self.dead = "exited with status 0"
            self.receive(Incoming(channel="stdio", problem=self.dead, end=True))

    async def open_stream(self, headers: Mapping[str, str]) -> int:
        await anyio.lowlevel.checkpoint()
        return 200

    def cancel(self, request: object) -> None:
        """There is nothing to close."""


def audit(
    make: Callable[[], Server], revisions: Iterable[str] | None = None, limits: Limits = LIMITS, **options: Any
) -> TargetReport:
    """The report on a server; every connection gets one of its own from ``make``."""

    @asynccontextmanager
    async def link(*_: object) -> AsyncGenerator[MemoryLink]:
        yield MemoryLink(make())

    async def run() -> TargetReport:
        chosen = tuple(revisions or register().revisions)
        with anyio.fail_after(60):
            return (await engine.audit([TARGET], Options(revisions=chosen, limits=limits, **options), lambda _: None))[
                0
            ]

    with patch.object(connect, "_link", link):
        return anyio.run(run)
