"""Capabilities as values: read what a peer declares, build what we declare, per revision. Pure.

Import the names from here. Nothing in this room does I/O or imports a framework.
"""

from troth.capabilities.model import (
    Capabilities,
    ClientCapabilities,
    Declared,
    Presence,
    Problem,
    ProblemKind,
    ServerCapabilities,
)
from troth.capabilities.read import read_client, read_server

__all__ = [
    "Capabilities",
    "ClientCapabilities",
    "Declared",
    "Presence",
    "Problem",
    "ProblemKind",
    "ServerCapabilities",
    "read_client",
    "read_server",
]
