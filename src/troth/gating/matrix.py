"""Primitives by hosts: who sees what, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from troth.capabilities.read import read_client
from troth.gating.decide import decide
from troth.register.load import register
from troth.register.model import Era

if TYPE_CHECKING:
    from collections.abc import Iterable

    from troth.capabilities.model import ClientCapabilities
    from troth.gating.decide import Decision
    from troth.gating.view import Listed
    from troth.register.model import HostProfile


class HostAt(NamedTuple):
    """A known host in one era that it speaks, at the newest revision of that era."""

    profile: HostProfile
    era: Era
    revision: str
    client: ClientCapabilities


class MatrixRow(NamedTuple):
    """What each host gets of one primitive."""

    listed: Listed
    decisions: tuple[Decision, ...]
    """In the order of `Matrix.hosts`."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Who sees what.

    Attributes:
        hosts: The columns: each host in each era that it speaks.
        rows: The primitives, in their order.
    """

    hosts: tuple[HostAt, ...]
    rows: tuple[MatrixRow, ...]


def matrix(listed: Iterable[Listed], profiles: Iterable[HostProfile]) -> Matrix:
    """What the known hosts see of some primitives."""
    hosts = tuple(
        HostAt(profile, era, revision, read_client(profile.declares[era], revision))
        for profile in profiles
        for era in Era
        if profile.declares.get(era) is not None
        for revision in (register().newest(era),)
    )
    rows = (MatrixRow(one, tuple(decide(one.primitive, one.need, host.client) for host in hosts)) for one in listed)
    return Matrix(hosts, tuple(rows))
