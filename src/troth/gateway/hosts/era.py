"""What decides the era of a message, and what the wire has in each legacy revision. Tables.

Source: 2026-07-28, basic protocol (`_meta` of every request); transports of the legacy revisions; the gap G-20.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from troth.bridge import Frame, Kind
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge import Bad

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""Member of `_meta` that makes a request modern."""

INITIALIZE: Final = "initialize"
LISTEN: Final = "subscriptions/listen"

MODERN: Final = frozenset(revision.encode() for revision in register().eras[Era.MODERN])
"""Modern revisions, as a header spells them."""

_LEGACY_QUOTED: Final = frozenset(b'"%s"' % revision.encode() for revision in register().eras[Era.LEGACY])


@dataclass(frozen=True, slots=True)
class Wire:
    """What the wire has in one legacy revision.

    Attributes:
        resumes: Events have ids, and a stream can be taken up again.
        primes: A stream begins with an id.
        batches: Arrays of messages.
        names_revision: Requests carry `MCP-Protocol-Version`.
    """

    resumes: bool = False
    primes: bool = False
    batches: bool = False
    names_revision: bool = False


PLAIN: Final = Wire()
WIRES: Final[Mapping[str, Wire]] = {
    "2025-03-26": Wire(resumes=True, batches=True),
    "2025-06-18": Wire(resumes=True, names_revision=True),
    "2025-11-25": Wire(resumes=True, primes=True, names_revision=True),
}
"""By revision; `PLAIN` for every other one."""


def no_answer(bad: Bad) -> Frame | None:
    """What a host meant as an answer to a request of ours, as an error without a code; None for what is no answer.

    It ends what it answers: nobody waits for a host that has said what it has to say.
    """
    if bad.id is None or bad.kind not in (Kind.RESPONSE, Kind.ERROR, None):
        return None
    return Frame(kind=Kind.ERROR, id=bad.id, body=Raw(b"{}"))


def is_modern(frame: Frame, version: bytes | None = None, *, session: bool = False) -> bool:
    """Whether a message is modern: the era is each message's own.

    `_meta` with a revision makes it modern; but within a session (HTTP says so by a header) a legacy revision there is
    only a remark. Without `_meta`, the header alone makes a request modern and malformed.

    Args:
        frame: The message.
        version: `MCP-Protocol-Version`; None for none, as on stdio.
        session: Whether a session is named.
    """
    revision = frame.meta.get(VERSION_KEY)
    if revision is not None:
        return not session or bytes(revision) not in _LEGACY_QUOTED
    # Hosts answer in legacy sessions only: modern servers ask nothing by requests.
    return not session and version in MODERN and frame.method not in ("", INITIALIZE)
