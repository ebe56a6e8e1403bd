"""Capabilities as values: read what a peer declares, build what we declare, per revision. Pure.

Import the names from here. Nothing in this room does I/O, and no framework is imported before a server object of it is
handed in.
"""

from troth.capabilities.build import Built, build, build_client
from troth.capabilities.compare import Comparison, Difference, compare
from troth.capabilities.facts import ClientFacts, Facts
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
from troth.capabilities.short import capabilities

__all__ = [
    "Built",
    "Capabilities",
    "ClientCapabilities",
    "ClientFacts",
    "Comparison",
    "Declared",
    "Difference",
    "Facts",
    "Presence",
    "Problem",
    "ProblemKind",
    "ServerCapabilities",
    "build",
    "build_client",
    "capabilities",
    "compare",
    "read_client",
    "read_server",
]
