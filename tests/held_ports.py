"""Ports for servers that are started later, or again."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def held_port() -> Iterator[int]:
    """A port of this machine that nobody else is given meanwhile, and on which nobody listens yet.

    A socket holds it that only takes the address. Who names the port can listen on it all the same, if it lets
    addresses be reused, as servers do; while nobody listens, connections are refused.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
