"""Questions of upstreams as values: read from hostile frames, spelled for a host of any revision. Sans-IO.

A legacy upstream asks by a request in the middle of a call, a modern one by entries of an ``input_required`` result.
Both become a `Question`. What passes to a host: members that its revision defines, and those that no revision defines.
What never passes: ``includeContext`` (nobody here has the context of a server), ``task`` (hosts are not asked for
tasks), and what neighbours say to each other in ``_meta``.

Every message to a person names the upstream that asks. Addresses pass unedited, by http and https only, and are never
fetched.

Source: client/roots, client/sampling, client/elicitation of every revision; 2026-07-28/basic/utilities/mrtr.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from troth.bridge import asks
from troth.bridge.asks import Asks  # noqa: TC001 - a type of members of a struct
from troth.bridge.errors import ErrorValue, not_supported, unknown_method
from troth.bridge.fields import Field, fields_of, limited
from troth.bridge.levels import members
from troth.bridge.model import BAD_PARAMS, Bad, Frame, Id, PeekedMeta
from troth.bridge.sampling import messages_for, tools_for, uses_tools
from troth.bridge.tree import members_of, text
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST: Final = 64
"""Questions of one round, and open at once in one call. A person answers a handful; more is an attack or a fault."""

LONGEST: Final = 8192
"""Characters of an address that a person is sent to. Browsers take as many."""

LONGEST_ID: Final = 256
"""Characters of an upstream's id of a visit; one that is longer, or cannot be printed, is replaced by one of ours."""

ROOTS: Final = "roots/list"
SAMPLING: Final = "sampling/createMessage"
ELICITATION: Final = "elicitation/create"

ELIGIBLE: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods whose result may be ``input_required`` (2026-07-28)."""


class QuestionKind(StrEnum):
    """What a question is about."""

    ROOTS = "roots"
    SAMPLING = "sampling"
    FORM = "form"
    URL = "url"


ELICITED: Final = frozenset({QuestionKind.FORM, QuestionKind.URL})
"""Kinds that have a way to say no: ``decline`` and ``cancel``."""

_BASE: Final[Mapping[QuestionKind, str]] = {
    QuestionKind.ROOTS: asks.ROOTS,
    QuestionKind.SAMPLING: asks.SAMPLING,
    QuestionKind.FORM: asks.FORM,
    QuestionKind.URL: asks.URL,
}


_METHODS: Final[Mapping[QuestionKind, str]] = {
    QuestionKind.ROOTS: ROOTS,
    QuestionKind.SAMPLING: SAMPLING,
    QuestionKind.FORM: ELICITATION,
    QuestionKind.URL: ELICITATION,
}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question of an upstream.

    Attributes:
        key: Its name within the call: ours (legacy upstream), or the upstream's own (modern).
        kind: What it is about.
        method: Method of the request.
        params: Its members, as they came, without those that the revision of the upstream does not define.
        revision: Revision of the upstream.
        needs: Rows that whoever is asked must have.
        id: Id of the request (legacy upstream); None for an entry of a result.
        fields: What the form asks for.
        elicitation: Id of a visit to an address, where the upstream gave one.
    """

    key: str
    kind: QuestionKind
    method: str
    params: Mapping[str, Raw]
    revision: str
    needs: Asks
    id: Id | None = None
    fields: Mapping[str, Field] = {}
    elicitation: str = ""


_SAMPLED: Final = "includeContext maxTokens messages metadata modelPreferences stopSequences systemPrompt temperature"

_PARAMS: Final[Mapping[str, Mapping[str, str]]] = {
    ROOTS: {
        "2024-11-05": "_meta",
        "2025-03-26": "_meta",
        "2025-06-18": "_meta",
        "2025-11-25": "_meta",
        "2026-07-28": "_meta",
    },
    SAMPLING: {
        "2024-11-05": _SAMPLED,
        "2025-03-26": _SAMPLED,
        "2025-06-18": _SAMPLED,
        "2025-11-25": f"{_SAMPLED} _meta task toolChoice tools",
        "2026-07-28": f"{_SAMPLED} toolChoice tools",
    },
    ELICITATION: {
        "2025-06-18": "message requestedSchema",
        "2025-11-25": "_meta elicitationId message mode requestedSchema task url",
        "2026-07-28": "message mode requestedSchema url",
    },
}

PARAMS: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    (method, revision): frozenset(words.split()) for method, rows in _PARAMS.items() for revision, words in rows.items()
}
"""Members of the params by (method, revision); a missing key means: not asked in this revision."""

_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    method: frozenset(word for words in rows.values() for word in words.split()) for method, rows in _PARAMS.items()
}
_NEVER: Final = frozenset({"includeContext", "task"})
_RESERVED: Final = frozenset(PeekedMeta.__annotations__)
_ENTRY: Final = ("method", "params")

_ADDRESS: Final = re.compile(r"https?://[^/?#\\]", re.IGNORECASE)

_read_number = msgspec.json.Decoder(int | float).decode


def read_request(frame: Frame, revision: str, key: str) -> Question | ErrorValue:
    """The question that a request of a legacy upstream is.

    Args:
        frame: The request.
        revision: Revision of the upstream.
        key: Its name within the call.

    Returns:
        The question, or the error to answer with: -32601 for what is no question in this revision, -32602 for what is
        malformed.
    """
    return _read(key, frame.method, frame.body, revision, frame.id)


def read_entries(raw: Raw, revision: str) -> tuple[Question, ...] | Bad:
    """The questions of an ``input_required`` result.

    Args:
        raw: Its member ``inputRequests``.
        revision: Revision of the upstream.
    """
    entries = members(raw, "inputRequests")
    if isinstance(entries, Bad):
        return entries
    if len(entries) > MOST:
        return Bad(BAD_PARAMS, f"inputRequests has more than {MOST} entries")
    found: list[Question] = []
    for key, entry in entries.items():
        parts = members(entry, "an entry of inputRequests", _ENTRY)
        if isinstance(parts, Bad):
            return parts
        question = _read(key, text(parts.get("method")) or "", parts.get("params"), revision, None)
        if isinstance(question, ErrorValue):
            return Bad(BAD_PARAMS, f"inputRequests: {question.message}")
        found.append(question)
    return tuple(found)


def read_addresses(raw: Raw, revision: str) -> tuple[Question, ...] | Bad:
    """The visits that an error -32042 asks for, as questions.

    Args:
        raw: Member ``elicitations`` of its ``data``.
        revision: Revision of the upstream.
    """
    try:
        items = msgspec.json.decode(raw, type=list[Raw])
    except msgspec.DecodeError:
        return Bad(BAD_PARAMS, "elicitations: an array belongs here")
    if not 0 < len(items) <= MOST:
        return Bad(BAD_PARAMS, f"elicitations: 1 to {MOST} items belong here")
    found: list[Question] = []
    for number, item in enumerate(items, 1):
        question = _read(f"url{number}", ELICITATION, item, revision, None)
        if isinstance(question, ErrorValue) or question.kind is not QuestionKind.URL:
            return Bad(BAD_PARAMS, "elicitations: visits to http(s) addresses belong here")
        found.append(question)
    return tuple(found)


def remembered(key: str, kind: QuestionKind, revision: str, fields: Mapping[str, Field]) -> Question:
    """As much of a question as reading its answer needs.

    Args:
        key: Its key.
        kind: What it is about.
        revision: Revision of the upstream.
        fields: Its fields, as far as they are remembered.
    """
    return Question(
        key=key, kind=kind, method=_METHODS[kind], params={}, revision=revision, needs=asks.ROWS, fields=fields
    )


def refused(method: str, revision: str) -> ErrorValue:
    """The error for a request of an upstream that nobody answers.

    Args:
        method: What was asked.
        revision: Revision of the upstream.
    """
    rows = register().gating(method, revision)
    missing = next((row.path for row in rows if row.side is Side.CLIENT), None)
    return unknown_method(method) if missing is None else not_supported(method, missing)


def for_host(question: Question, revision: str, upstream: str, elicitation: str = "") -> dict[str, object] | Bad:
    """The params of a question as a host of another revision understands them.

    Args:
        question: Whose needs the host has.
        revision: Revision of the host.
        upstream: Name of the upstream, for the message.
        elicitation: Id of a visit to an address, for revisions that have one; used where the upstream gave none.

    Returns:
        The params; or why they cannot be said in that revision.
    """
    known = PARAMS.get((question.method, revision))
    if known is None or (question.kind is QuestionKind.URL and "url" not in known):
        return Bad(BAD_PARAMS, f"{question.method}: the host's revision has no such question")
    lacks = (_KNOWN[question.method] - known) | _NEVER | {"_meta"}
    params: dict[str, object] = {name: raw for name, raw in question.params.items() if name not in lacks}
    meta = {name: raw for name, raw in members_of(question.params.get("_meta")).items() if name not in _RESERVED}
    if meta and "_meta" in known:
        params["_meta"] = meta
    if question.kind in ELICITED:
        params["message"] = named(upstream, text(question.params["message"]) or "")
    change = _CHANGES.get(question.kind)
    bad = None if change is None else change(question, params, revision)
    if bad is not None:
        return bad
    if "elicitationId" in known and question.kind is QuestionKind.URL:
        params["elicitationId"] = question.elicitation or elicitation
    return params


def _limit_form(question: Question, params: dict[str, object], revision: str) -> Bad | None:
    schema = limited(question.params["requestedSchema"], question.fields, revision)
    if isinstance(schema, Bad):
        return schema
    params["requestedSchema"] = schema
    return None


def _spell_messages(question: Question, params: dict[str, object], revision: str) -> None:
    params["messages"] = messages_for(question.params["messages"], revision)
    if "tools" in params:
        params["tools"] = tools_for(question.params["tools"], revision)


_CHANGES: Final[Mapping[QuestionKind, Callable[[Question, dict[str, object], str], Bad | None]]] = {
    QuestionKind.FORM: _limit_form,
    QuestionKind.SAMPLING: _spell_messages,
}
"""What else of a question is said otherwise in another revision."""


def entry(question: Question, params: Mapping[str, object]) -> dict[str, object]:
    """A question as an entry of ``inputRequests``.

    Args:
        question: The question.
        params: What `for_host` returned.
    """
    return {"method": question.method, "params": params} if params else {"method": question.method}


def named(upstream: str, message: str) -> str:
    """A message to a person that says who asks, without what could hide that from the person."""
    clean = "".join(letter for letter in message if letter.isprintable() or letter in "\n\t")
    return f"{upstream} asks: {clean}"


def base_row(question: Question) -> str:
    """The row that gates the question as a whole."""
    return _BASE[question.kind]


def _read(key: str, method: str, raw: Raw | None, revision: str, id: Id | None) -> Question | ErrorValue:  # noqa: A002
    known = PARAMS.get((method, revision))
    if known is None:
        return refused(method, revision)
    found = members(Raw(b"{}") if raw is None else raw, f"{method}: params", _KNOWN[method])
    if isinstance(found, Bad):
        return ErrorValue(found.code, found.reason)
    params = {name: value for name, value in found.items() if name in known or name not in _KNOWN[method]}
    needs = _needs(asks.ROOTS)
    question = _READERS[method](
        Question(key=key, kind=QuestionKind.ROOTS, method=method, params=params, revision=revision, needs=needs, id=id)
    )
    return ErrorValue(BAD_PARAMS, f"{method}: {question}") if isinstance(question, str) else question


def _needs(*rows: str) -> Asks:
    return frozenset(rows)


def _roots(question: Question) -> Question | str:
    return question


def _sampling(question: Question) -> Question | str:
    params = question.params
    try:
        _read_number(params.get("maxTokens", b""))
    except msgspec.DecodeError:
        return "params: maxTokens: a number belongs here"
    tools = uses_tools(params)
    if isinstance(tools, str):
        return tools
    needs = _needs(asks.SAMPLING, asks.SAMPLING_TOOLS) if tools else _needs(asks.SAMPLING)
    return msgspec.structs.replace(question, kind=QuestionKind.SAMPLING, needs=needs)


def _elicitation(question: Question) -> Question | str:
    params = question.params
    if text(params.get("message")) is None:
        return "params: message: a text belongs here"
    mode = text(params["mode"]) if "mode" in params else "form"
    reader = _MODES.get(mode or "")
    return "params: mode: form or url belongs here" if reader is None else reader(question)


def _form(question: Question) -> Question | str:
    fields = fields_of(question.params.get("requestedSchema"))
    if isinstance(fields, str):
        return fields
    return msgspec.structs.replace(question, kind=QuestionKind.FORM, needs=_needs(asks.FORM), fields=fields)


def _url(question: Question) -> Question | str:
    address = text(question.params.get("url"))
    if address is None or not is_address(address):
        return "params: url: an http(s) address belongs here"
    given = text(question.params.get("elicitationId")) or ""
    usable = given if len(given) <= LONGEST_ID and given.isprintable() else ""
    return msgspec.structs.replace(question, kind=QuestionKind.URL, needs=_needs(asks.URL), elicitation=usable)


def is_address(address: str) -> bool:
    """Whether a person may be sent there: an http or https address without spaces, controls, or turns of direction."""
    plain = address.isprintable() and " " not in address and len(address) <= LONGEST
    return plain and _ADDRESS.match(address) is not None


_READERS: Final[Mapping[str, Callable[[Question], Question | str]]] = {
    ROOTS: _roots,
    SAMPLING: _sampling,
    ELICITATION: _elicitation,
}
_MODES: Final[Mapping[str, Callable[[Question], Question | str]]] = {"form": _form, "url": _url}
