"""What hosts can be asked, and what an upstream is told of that. Pure.

`Asks` is a set of rows of the register by id. A path would name the same thing, but the spelling of paths is the
register's business and ids never change. The sets are small and few (six rows), so they serve as keys: hosts of one
principal with the same asks share their upstreams. Entries of a host's ``extensions`` and ``experimental`` that the
operator lets pass are members too, as texts: hosts that differ in them must not share a declaration either.

Three rules. An upstream is told of a capability exactly when a question of that kind will be answered.
``sampling.context`` is in no set: to an upstream "this server" would be the whole gateway. ``elicitation.url`` is told
only where the upstream can take everybody behind its session for one person.

Source: basic/lifecycle, capability negotiation; client/roots, client/sampling, client/elicitation of every revision.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, cast

import msgspec

from troth.bridge import errors
from troth.capabilities import ClientFacts, build_client, read_client
from troth.capabilities.paths import shown, spell
from troth.capabilities.values import copied
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from troth.bridge.model import Frame
    from troth.capabilities import ClientCapabilities

Asks = frozenset[str]
"""Ids of the rows that somebody answers for, of `ROWS`; and entries of open maps that pass (`entries_of`)."""

ROOTS: Final = "CAP-02"
ROOTS_CHANGED: Final = "CAP-03"
SAMPLING: Final = "CAP-04"
SAMPLING_TOOLS: Final = "CAP-06"
FORM: Final = "CAP-08"
URL: Final = "CAP-09"

ROWS: Final[Asks] = frozenset({ROOTS, ROOTS_CHANGED, SAMPLING, SAMPLING_TOOLS, FORM, URL})
NOTHING: Final[Asks] = frozenset()

HOST: Final = "host"
BROKER: Final = "broker"

OPEN: Final = ("extensions", "experimental")
"""Members of a declaration that are open maps. Source: schema, ClientCapabilities."""
LONGEST_ENTRY: Final = 4096
"""Bytes of the longest entry of such a map that passes: it is sent with every request to a modern upstream."""

_ELICITATION: Final = "CAP-07"
_MODES: Final = {FORM: "form", URL: "url"}


def asks_of(capabilities: ClientCapabilities) -> Asks:
    """What a host can be asked, by what it declared and the revision in force.

    An elicitation that is declared empty means forms, and so does every one where the revision knows no modes. One
    that names unknown modes only means nothing (gap G-06).
    """
    found = {row for row, key in _keys().items() if key in capabilities.in_force}
    if _ELICITATION in found:
        found.remove(_ELICITATION)
        if not _has_modes(capabilities.revision):
            found.add(FORM)
    return frozenset(found)


def narrowed(
    asks: Asks,
    *,
    ask: Collection[str] = (HOST,),
    answers: Asks = NOTHING,
    pooled: bool = False,
    relayed: Mapping[str, Collection[str]] | None = None,
) -> Asks:
    """What one upstream may ask on behalf of hosts with these asks.

    Args:
        asks: What the hosts can be asked (`asks_of`).
        ask: Whom the operator lets answer this upstream: `HOST` or `BROKER`. What ``answers`` holds counts without.
        answers: What is answered without a host: roots that are configured, kinds that the broker takes now.
        pooled: Whether one session serves hosts of several principals at once. Then no host is asked anything, since
            nothing would tell which; and the upstream is told no entry of an open map, since those of one host are not
            another's.
        relayed: Keys of each of `OPEN` that the operator lets this upstream see.
    """
    own = asks if HOST in ask and not pooled else NOTHING
    found = own | answers
    if ROOTS in own and ROOTS_CHANGED not in own:
        found -= {ROOTS_CHANGED}
    if pooled:
        found = of_several(found)
    passed = NOTHING if pooled else frozenset(text for text in asks - ROWS if _passes(text, relayed or {}))
    return (found & ROWS) | passed


def of_several(asks: Asks) -> Asks:
    """What may be asked by an upstream that knows several principals by one credential, without a session of each.

    That is no visit to an address: what one person allows there, another one would use.
    """
    return asks - {URL}


def entries_of(capabilities: ClientCapabilities, relayed: Mapping[str, Collection[str]]) -> Asks:
    """Entries of a host's open maps that may pass to some upstream: each a text with member, key and settings.

    Args:
        capabilities: What the host declared.
        relayed: Keys of each of `OPEN` that some upstream may see.
    """
    texts = (
        _entry(member, key, value)
        for member in OPEN
        for key, value in cast("dict[str, object]", capabilities.effective.get(member, {})).items()
        if key in relayed.get(member, ())
    )
    return frozenset(text for text in texts if len(text) <= LONGEST_ENTRY)


def open_maps(asks: Asks) -> dict[str, dict[str, dict[str, object]]]:
    """The entries among these asks, by member and key."""
    made: dict[str, dict[str, dict[str, object]]] = {}
    for text in sorted(asks - ROWS):
        member, key, value = _read_entry(text)
        made.setdefault(member, {})[key] = value
    return made


def _passes(text: str, relayed: Mapping[str, Collection[str]]) -> bool:
    member, key, _ = _read_entry(text)
    return key in relayed.get(member, ())


def _entry(member: str, key: str, value: object) -> str:
    return msgspec.json.encode([member, key, value], order="sorted").decode()


_read_entry = msgspec.json.Decoder(tuple[str, str, dict[str, object]]).decode


def client_facts(asks: Asks) -> ClientFacts:
    """The facts on which a declaration with these asks stands."""
    maps = open_maps(asks)
    return ClientFacts(
        extensions=maps.get("extensions", {}),
        experimental=maps.get("experimental", {}),
        roots=ROOTS in asks,
        roots_changed=ROOTS_CHANGED in asks,
        sampling=SAMPLING in asks,
        sampling_tools=SAMPLING_TOOLS in asks,
        elicitation=frozenset(mode for row, mode in _MODES.items() if row in asks),
    )


def client_capabilities(asks: Asks, revision: str) -> dict[str, object]:
    """The ``capabilities`` of ``initialize`` (legacy), or ``clientCapabilities`` in ``_meta`` (modern).

    Args:
        asks: What the upstream may ask (`narrowed`).
        revision: Revision of the upstream, or the one that is offered to it.

    Returns:
        A new object; empty for no asks, and for those that the revision does not define.
    """
    return cast("dict[str, object]", copied(_built(asks, revision)))


def missing(needs: Asks, asks: Asks) -> tuple[str, ...]:
    """Paths of the capabilities that a question needs and nobody answers for, the wider one first."""
    return tuple(register().by_id[row].path for row in sorted(needs - asks))


def required(frame: Frame, revision: str) -> tuple[str, ...]:
    """Paths of the capabilities that an error -32021 says are missing; none for what cannot be read.

    What was learnt so is shown, never enforced: the next call may need less.

    Args:
        frame: The error of an upstream.
        revision: Revision of the upstream.
    """
    raw = errors.data_of(frame).get("requiredCapabilities")
    try:
        given = None if raw is None else msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        given = None
    return tuple(sorted(shown(spell(key)) for key in read_client(given, revision).in_force))


@lru_cache(maxsize=512)
def _built(asks: Asks, revision: str) -> dict[str, object]:
    return build_client(client_facts(asks), revision=revision).capabilities


@cache
def _keys() -> dict[str, tuple[str, ...]]:
    return {row: register().by_id[row].key for row in (*sorted(ROWS), _ELICITATION)}


@cache
def _has_modes(revision: str) -> bool:
    return register().by_id[FORM].at(revision) is not None
