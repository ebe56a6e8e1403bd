"""Peers to test against: servers that keep every promise, or break a chosen one.

In memory, feed a `Script` one JSON value at a time; as a process, run ``python -m troth.testing server``.
"""

from __future__ import annotations

from troth.testing.content import VARIANTS, Variant
from troth.testing.faults import FAULTS, twists
from troth.testing.model import Context, Exit, Fault, Junk, Out, Send, Twist
from troth.testing.script import Script

__all__ = [
    "FAULTS",
    "VARIANTS",
    "Context",
    "Exit",
    "Fault",
    "Junk",
    "Out",
    "Script",
    "Send",
    "Twist",
    "Variant",
    "twists",
]
