"""What an audit is asked to do, and what it tells while it works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from troth.audit.wire.types import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping


class UsageError(Exception):
    """The audit was called wrongly: the message says what is wrong, where, and what to do. Exit status 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to audit and how far to go.

    Attributes:
        revisions: Protocol revisions to ask for, oldest first; names that the register knows.
        active: Whether tools that may have effects may be called.
        change_tool: Name of a tool that changes a list or a resource; naming it allows calling it.
        change_arguments: Arguments for that tool; None for none.
        touch: A command (program and arguments) that provokes a change in the target, run by the audit.
        profile: Id of the host profile whose view is wanted (``--as``).
        limits: Budgets of time and size.
        jobs: How many targets are audited at once.
    """

    revisions: tuple[str, ...]
    active: bool = False
    change_tool: str | None = None
    change_arguments: Mapping[str, Any] | None = None
    touch: tuple[str, ...] | None = None
    profile: str | None = None
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step of a running audit, for people who wait.

    Attributes:
        target: Name of the target.
        revision: Revision being asked; None for work that belongs to none (deciding the era).
        step: Number of the step that begins now, from 1.
        steps: How many steps this target has in all, as far as known.
        text: What is done now, in a few words.
    """

    target: str
    revision: str | None
    step: int
    steps: int
    text: str
