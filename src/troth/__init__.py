"""Troth: what MCP hosts and servers promise each other, and whether they keep it.

The names below are imported on first use, so that ``import troth`` costs nothing. ``troth.capabilities`` and
``troth.register`` are packages: the short forms are ``troth.capabilities.capabilities``, the register is
``troth.register.register``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.capabilities import (
        Built,
        ClientCapabilities,
        ClientFacts,
        Comparison,
        Facts,
        Problem,
        ProblemKind,
        ServerCapabilities,
        build,
        build_client,
        compare,
        read_client,
        read_server,
    )
    from troth.register.model import Era, Side

_HOMES = {
    "Built": "troth.capabilities",
    "ClientCapabilities": "troth.capabilities",
    "ClientFacts": "troth.capabilities",
    "Comparison": "troth.capabilities",
    "Era": "troth.register.model",
    "Facts": "troth.capabilities",
    "Problem": "troth.capabilities",
    "ProblemKind": "troth.capabilities",
    "ServerCapabilities": "troth.capabilities",
    "Side": "troth.register.model",
    "build": "troth.capabilities",
    "build_client": "troth.capabilities",
    "compare": "troth.capabilities",
    "read_client": "troth.capabilities",
    "read_server": "troth.capabilities",
}

__all__ = [
    "Built",
    "ClientCapabilities",
    "ClientFacts",
    "Comparison",
    "Era",
    "Facts",
    "Problem",
    "ProblemKind",
    "ServerCapabilities",
    "Side",
    "build",
    "build_client",
    "compare",
    "read_client",
    "read_server",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'troth' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
