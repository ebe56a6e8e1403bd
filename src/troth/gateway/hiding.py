"""What is hidden from a host and refused to it, because it did not declare what that needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from troth.bridge.catalogue import Asker
from troth.bridge.listed import FORMS
from troth.capabilities.paths import shown as printable
from troth.gating import Primitive, decide

if TYPE_CHECKING:
    from troth.bridge.listed import Entry, Kind
    from troth.gateway.asked import Asked
    from troth.gateway.fleet import Fleet
    from troth.gateway.model import Answer, Host


NAMED: Final = 5
"""Hidden items of a kind that the status names; the rest are counted."""


def asker(host: Host) -> Asker:
    """What of a host decides which items it sees."""
    return Asker(host.revision, host.capabilities.in_force if host.gated else None)


def refusal(asked: Asked, entry: Entry, shown: str) -> Answer | None:
    """The answer to a host that uses what is hidden from it, in its revision's way; None if it may.

    Args:
        asked: The request.
        entry: What it names, as the catalogue knows it.
        shown: The name or URI as the host wrote it.
    """
    need = asked.fleet.known.need(entry)
    if need is None or not asked.host.gated:
        return None
    decision = decide(Primitive(entry.kind, shown), need, asked.host.capabilities)
    return None if decision.allowed else asked.error(decision.code, decision.message, decision.data)


def hidden_upstream(asked: Asked, kind: Kind, shown: str) -> Answer | None:
    """The answer to a host that uses what its upstream itself hides from it; None if nothing tells of that.

    Such an upstream lists it only for those who declared enough, so another host of the same principal must have seen
    it. Only what is in a list counts: any URI may lead somewhere by its prefix.

    Args:
        asked: The request, which names what no list of this host has.
        kind: What it names.
        shown: The name or URI as the host wrote it.
    """
    for fleet in asked.gateway.fleets_of(asked.host.principal):
        entry = fleet.known.route(kind, shown)
        if entry is not None and entry.members and (refused := refusal(asked, entry, shown)) is not None:
            return refused
    return None


def hidden(fleet: Fleet, host: Host) -> list[str]:
    """What is hidden from a host and why, one sentence for each kind and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    who = asker(host)
    for kind, form in FORMS.items():
        names = fleet.catalogue.hidden(kind, who)
        for entry in fleet.catalogue.entries(kind) if names else ():
            if entry.shown in names:
                why = decide(Primitive(kind, entry.shown), entry.need, host.capabilities).why
                found.setdefault((form.word, why), []).append(printable(entry.shown))
    return [
        f"{word} hidden from it: {', '.join(names[:NAMED])}"
        f"{f' and {len(names) - NAMED} more' if len(names) > NAMED else ''} ({why})"
        for (word, why), names in found.items()
    ]
