"""Which era a target speaks: decided by `server/discover` with a full envelope, and by nothing else.

Several legacy servers answer `tools/list` with a modern `_meta` and no handshake, so no other method can decide it.
Source: 2026-07-28/basic/versioning, and how servers were seen to behave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.audit.context import told
from troth.audit.model import Outcome
from troth.audit.wire.types import Failure

if TYPE_CHECKING:
    from troth.audit.wire.types import Reply

MODERN_CODES = frozenset({-32020, -32021, -32022})
"""Errors that only a server of the modern era sends."""
NO_EVIDENCE = {
    401: "it wants to know who asks (give a token with --header)",
    403: "this client may not ask (a token is given with --header)",
    429: "it is asked too often",
}
"""HTTP statuses that say nothing of the era, and neither does any from 500 on, in words."""


def _no_evidence(reply: Reply) -> str | None:
    """Why an answer over HTTP says nothing of the server behind it, if that is so."""
    status = reply.status or 0
    if status in NO_EVIDENCE or status >= 500:
        return f"`{reply.method}` got HTTP {status}: {NO_EVIDENCE.get(status, 'the server or a gateway failed')}"
    if reply.failure is Failure.HTTP and reply.status is None:
        return f"`{reply.method}` got no HTTP answer: {reply.detail}"
    return None


def judge(reply: Reply) -> tuple[Outcome, str]:
    """What the answer to `server/discover` says: served, not served, or unreachable, with the reason in words.

    Any object is modern, even with members missing. Silence, an early end, every other error and a plain 400 or 404
    are legacy.
    """
    if reply.ok and isinstance(reply.result, dict):
        return Outcome.CHECKED, ""
    if reply.ok:
        return Outcome.NOT_SERVED, "`server/discover` gets a result that is no object: the server is a legacy one"
    if (reason := _no_evidence(reply)) is not None:
        return Outcome.UNREACHABLE, reason
    if reply.code in MODERN_CODES:
        return Outcome.NOT_SERVED, f"the server is of the modern era and refuses this revision: {told(reply)}"
    what = f"no answer ({reply.detail})" if reply.failure in (Failure.TIMEOUT, Failure.CLOSED) else told(reply)
    return Outcome.NOT_SERVED, f"`server/discover` gets {what}: the server is a legacy one"


def judge_initialize(reply: Reply) -> tuple[Outcome, str]:
    """What the answer to `initialize` says, as `judge`."""
    if reply.ok:
        return Outcome.CHECKED, ""
    if (reason := _no_evidence(reply)) is not None:
        return Outcome.UNREACHABLE, reason
    if reply.failure in (Failure.TIMEOUT, Failure.CLOSED):
        return Outcome.DID_NOT_START, f"`initialize` got no answer: {reply.detail}"
    return Outcome.NOT_SERVED, f"`initialize` gets {told(reply)}"
