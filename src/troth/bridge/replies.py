"""Answers to questions: read from what hosts say, checked, spelled for the upstream; and those nobody gave. Sans-IO.

A legacy upstream hears a result or an error. A modern one hears results only, since an answer to an input request has
no form for an error (gap G-21): there an error ends the call.

Source: client/roots, client/sampling, client/elicitation of every revision; 2026-07-28/basic/utilities/mrtr.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from troth.bridge import asks, errors
from troth.bridge.errors import INTERNAL, ErrorValue, not_supported
from troth.bridge.fields import filled, unfit
from troth.bridge.fresh import error_line, result_line
from troth.bridge.levels import members
from troth.bridge.model import BAD_PARAMS, Bad, Frame, Id, Kind, PeekedMeta
from troth.bridge.questions import ELICITED, Question, QuestionKind, base_row
from troth.bridge.sampling import MANY, OF_TOOLS, block_type, blocks_of, content_for
from troth.bridge.tree import members_of, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge.asks import Asks

REJECTED: Final = -1
"""Code of a sampling that a person rejected (client/sampling, error handling, legacy)."""

MOST_ROOTS: Final = 1000
"""Roots of one answer. People open a few folders."""

Check = Callable[[Raw, Raw], str]
"""Holds the content of a form against its schema: (schema, content) -> what is wrong; empty if nothing."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What an upstream hears to a question.

    Attributes:
        result: Members of the result; None where there is an error.
        error: The error.
        notes: What was left out of the host's answer and why, one sentence each.
    """

    result: Mapping[str, object] | None = None
    error: ErrorValue | None = None
    notes: tuple[str, ...] = ()

    def line(self, id: Id) -> bytes:  # noqa: A002 - the name of the member
        """The response or error to a legacy upstream's request.

        Args:
            id: The upstream's id of it.
        """
        error = self.error
        if error is not None:
            return error_line(id, error.code, error.message, error.data)
        return result_line(id, self.result or {})


_RESULTS: Final[Mapping[QuestionKind, Mapping[str, str]]] = {
    QuestionKind.ROOTS: {
        "2024-11-05": "_meta roots",
        "2025-03-26": "_meta roots",
        "2025-06-18": "_meta roots",
        "2025-11-25": "_meta roots",
        "2026-07-28": "roots",
    },
    QuestionKind.SAMPLING: {
        "2024-11-05": "_meta content model role stopReason",
        "2025-03-26": "_meta content model role stopReason",
        "2025-06-18": "_meta content model role stopReason",
        "2025-11-25": "_meta content model role stopReason",
        "2026-07-28": "_meta content model role stopReason",
    },
    QuestionKind.FORM: {
        "2025-06-18": "_meta action content",
        "2025-11-25": "_meta action content",
        "2026-07-28": "action content",
    },
    QuestionKind.URL: {
        "2025-11-25": "_meta action content",
        "2026-07-28": "action content",
    },
}
RESULTS: Final[Mapping[tuple[QuestionKind, str], frozenset[str]]] = {
    (kind, revision): frozenset(words.split()) for kind, rows in _RESULTS.items() for revision, words in rows.items()
}
"""Members of the answer by (kind, revision of the upstream)."""

_KNOWN: Final[Mapping[QuestionKind, frozenset[str]]] = {
    kind: frozenset({"resultType", *(word for words in rows.values() for word in words.split())})
    for kind, rows in _RESULTS.items()
}
_ACTIONS: Final = frozenset({"accept", "cancel", "decline"})
_RESERVED: Final = frozenset(PeekedMeta.__annotations__)
_ROOT_META: Final = frozenset({"2025-06-18", "2025-11-25", "2026-07-28"})
"""Revisions in which a root has ``_meta``."""

_ROOT: Final = re.compile(r"file://[^\s\x00-\x1f\x7f]*/[^\s\x00-\x1f\x7f]*\Z", re.IGNORECASE)
_NULL: Final = Raw(b"null")
_read_items = msgspec.json.Decoder(list[Raw]).decode


def read_frame(question: Question, frame: Frame, revision: str, check: Check | None = None) -> Reply | Bad:
    """What a legacy host answered to a question.

    Args:
        question: What it was asked.
        frame: Its response or error, opened or not. An error is relayed.
        revision: Revision of the host.
        check: Holds the content of a form against its schema.

    Returns:
        The answer as the upstream understands it; or what is wrong with it.
    """
    if frame.kind is Kind.ERROR:
        if errors.code(frame) is None:
            return Reply(error=ErrorValue(INTERNAL, f"The host answered {question.method} with what is no answer"))
        return Reply(error=errors.translated(frame, question.method, revision, question.revision))
    return read_entry(question, frame.body or _NULL, check)


def read_entry(question: Question, raw: Raw, check: Check | None = None) -> Reply | Bad:
    """What a modern host answered to a question: an entry of ``inputResponses``.

    Args:
        question: What it was asked.
        raw: The entry.
        check: Holds the content of a form against its schema.
    """
    known = _KNOWN[question.kind]
    found = members(raw, f"the answer to {question.method}", known)
    if isinstance(found, Bad):
        return found
    result: dict[str, object] = {name: value for name, value in found.items() if name not in known}
    meta = {name: value for name, value in members_of(found.get("_meta")).items() if name not in _RESERVED}
    if meta and "_meta" in RESULTS[question.kind, question.revision]:
        result["_meta"] = meta
    return _READERS[question.kind](question, found, result, check)


def refusal(question: Question, answered: Asks) -> Reply:
    """What an upstream hears at once that asks what nobody answers: -32601, or -32602 for a mode or tools alone.

    Args:
        question: The question.
        answered: What somebody answers for.
    """
    if question.kind in ELICITED and not answered & {asks.FORM, asks.URL}:
        return Reply(error=not_supported(question.method, "elicitation"))
    missing = asks.missing(question.needs, answered) or asks.missing(question.needs, asks.NOTHING)
    if question.kind not in ELICITED and base_row(question) not in answered:
        return Reply(error=not_supported(question.method, missing[0]))
    words = f"{question.method}: {missing[0]} was not declared"
    return Reply(error=ErrorValue(BAD_PARAMS, words, {"capability": missing[0]}))


def unsayable(question: Question, bad: Bad) -> Reply:
    """What an upstream hears whose question the host's revision cannot say (`questions.for_host`)."""
    if question.id is None and question.kind in ELICITED:
        return Reply(result={"action": "cancel"})
    return Reply(error=ErrorValue(BAD_PARAMS, f"{question.method}: {bad.reason}"))


def malformed(question: Question, bad: Bad) -> Reply:
    """What an upstream hears where a legacy host's answer cannot be used."""
    return Reply(error=ErrorValue(INTERNAL, f"{question.method}: the host's answer cannot be used: {bad.reason}"))


def expired(question: Question, why: str = "nobody answered in time") -> Reply:
    """What an upstream hears when nobody answered: cancel for an elicitation, an error for all else."""
    if question.kind in ELICITED:
        return Reply(result={"action": "cancel"})
    return Reply(error=ErrorValue(INTERNAL, f"{question.method}: {why}"))


def declined(question: Question) -> Reply:
    """What an upstream hears when a person said no."""
    if question.kind in ELICITED:
        return Reply(result={"action": "decline"})
    return Reply(error=ErrorValue(REJECTED, f"{question.method}: the user rejected it"))


def _roots(question: Question, found: Mapping[str, Raw], result: dict[str, object], _: Check | None) -> Reply | Bad:
    try:
        items = _read_items(found.get("roots", b""))
    except msgspec.DecodeError:
        return Bad(BAD_PARAMS, "roots: an array belongs here")
    if len(items) > MOST_ROOTS:
        return Bad(BAD_PARAMS, f"roots: more than {MOST_ROOTS}")
    kept: list[dict[str, Raw]] = []
    notes: list[str] = []
    for number, item in enumerate(items):
        root = dict(members_of(item))
        if not is_root(text(root.get("uri"))):
            notes.append(f"roots[{number}] is left out: its uri is no file:// URI")
            continue
        if "name" in root and text(root["name"]) is None:
            notes.append(f"roots[{number}]: its name is left out: it is no text")
            del root["name"]
        if question.revision not in _ROOT_META:
            root.pop("_meta", None)
        kept.append(root)
    return Reply(result={**result, "roots": kept}, notes=tuple(notes))


def is_root(uri: str | None) -> bool:
    """Whether this is the address of a folder or file: ``file://``, a path, and no spaces or controls."""
    return uri is not None and _ROOT.match(uri) is not None


def _sampling(question: Question, found: Mapping[str, Raw], result: dict[str, object], _: Check | None) -> Reply | Bad:
    if text(found.get("role")) is None or text(found.get("model")) is None:
        return Bad(BAD_PARAMS, "role and model: texts belong here")
    blocks = blocks_of(found.get("content"))
    if blocks is None:
        return Bad(BAD_PARAMS, "content: a content block belongs here, or an array of them")
    if asks.SAMPLING_TOOLS not in question.needs and any(block_type(block) in OF_TOOLS for block in blocks):
        return Bad(BAD_PARAMS, "content: the use of a tool, where none was offered")
    if question.revision not in MANY and not blocks:
        return Bad(BAD_PARAMS, "content: no content block, where the upstream's revision has one")
    result |= {
        "role": found["role"],
        "content": content_for(found["content"], question.revision),
        "model": found["model"],
    }
    if text(found.get("stopReason")) is not None:
        result["stopReason"] = found["stopReason"]
    return Reply(result=result)


def _elicitation(
    question: Question, found: Mapping[str, Raw], result: dict[str, object], check: Check | None
) -> Reply | Bad:
    action = text(found.get("action"))
    if action not in _ACTIONS:
        return Bad(BAD_PARAMS, "action: accept, decline or cancel belongs here")
    result["action"] = action
    if action != "accept" or question.kind is QuestionKind.URL:
        return Reply(result=result)
    content = members(found.get("content", _NULL), "content")
    if isinstance(content, Bad):
        return content
    if wrong := unfit(content, question.revision):
        return Bad(BAD_PARAMS, wrong)
    full = filled(question.fields, content)
    if check is not None and (wrong := check(question.params["requestedSchema"], Raw(msgspec.json.encode(full)))):
        return Bad(BAD_PARAMS, wrong)
    return Reply(result={**result, "content": full})


_READERS: Final[
    Mapping[QuestionKind, Callable[[Question, Mapping[str, Raw], dict[str, object], Check | None], Reply | Bad]]
] = {
    QuestionKind.ROOTS: _roots,
    QuestionKind.SAMPLING: _sampling,
    QuestionKind.FORM: _elicitation,
    QuestionKind.URL: _elicitation,
}
