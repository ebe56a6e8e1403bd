"""What a given host would see and use of a target (`--as`): the lists for its declaration, and its known habits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from troth.audit.context import mapping
from troth.audit.model import HostView
from troth.audit.probes.lists import KEYS, read
from troth.audit.wire.connect import answer_none
from troth.capabilities import read_client
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from troth.audit.context import Context, Listing
    from troth.register import Definition, HostProfile

MEMBERS = {
    "tools/list": "name",
    "prompts/list": "name",
    "resources/list": "uri",
    "resources/templates/list": "uriTemplate",
}
FIRST_PAGE = "first-page-only"
"""The habit of reading only the first page of a list."""


async def view(ctx: Context, profile_id: str) -> HostView:
    """The view of a host on the target in the revision in force.

    Args:
        ctx: The target, after its probes have run.
        profile_id: A host profile of the register.

    Raises:
        KeyError: There is no such profile.
    """
    profile = register().hosts[profile_id]
    declares = profile.declares.get(ctx.era)
    if declares is None:
        note = f"{profile.product} does not speak this era, and cannot use the server in it."
        return HostView(
            profile=profile_id, speaks=False, effective={}, tools=(), prompts=(), resources=(), notes=(note,)
        )
    effective = dict(_effective(ctx, profile))
    lists = await _lists(ctx, profile, declares)
    seen = {method: _names(listing, profile) for method, listing in lists.items()}
    return HostView(
        profile=profile_id,
        speaks=True,
        effective=effective,
        tools=seen.get("tools/list", ()),
        prompts=seen.get("prompts/list", ()),
        resources=(*seen.get("resources/list", ()), *seen.get("resources/templates/list", ())),
        notes=tuple(_notes(ctx, profile, seen)),
    )


def _effective(ctx: Context, profile: HostProfile) -> Iterator[tuple[str, str]]:
    """What the host does with each capability that the server declares with effect."""
    for row in register().at(Side.SERVER, ctx.revision):
        definition = row.at(ctx.revision)
        if definition is not None and ctx.declares(row.id) and (definition.gates or definition.notifications):
            yield row.path, "; ".join(_uses(profile, definition))


def _uses(profile: HostProfile, definition: Definition) -> Iterator[str]:
    calls = [gate.method for gate in definition.gates if profile.calling(gate.method)]
    never = [gate.method for gate in definition.gates if profile.never(gate.method)]
    acts = [note.method for note in definition.notifications if profile.honouring(note.method)]
    drops = [note.method for note in definition.notifications if profile.ignoring(note.method)]
    said = (("calls", calls), ("never calls", never), ("acts on", acts), ("ignores", drops))
    found = [f"{verb} {', '.join(methods)}" for verb, methods in said if methods]
    yield from found or ["no use of it is known"]


async def _lists(ctx: Context, profile: HostProfile, declares: Mapping[str, Any]) -> dict[str, Listing]:
    """The lists that this host reads, asked for with its own declaration."""
    wanted = [method for method in KEYS if ctx.lists[method].served and _reads(ctx, profile, method)]
    declared = dict(read_client(declares, ctx.revision).effective)
    if ctx.modern:
        session = await ctx.alive()
        return {method: await read(session, method, capabilities=declared) for method in wanted}
    own = await ctx.open(declared, answer_none)
    return {} if own is None else {method: await read(own, method) for method in wanted}


def _reads(ctx: Context, profile: HostProfile, method: str) -> bool:
    """Whether the host reads a list: some look at the declaration first, some do not."""
    use = profile.calling(method)
    if use is None:
        return profile.test and not profile.never(method)
    return use.needs is None or ctx.declared.has(use.needs)


def _names(listing: Listing, profile: HostProfile) -> tuple[str, ...]:
    names = listing.names(MEMBERS[listing.method])
    first_page = mapping(listing.reply.result).get(KEYS[listing.method])
    if profile.has(FIRST_PAGE) and isinstance(first_page, list):
        return names[: len(cast("list[object]", first_page))]
    return names


def _notes(ctx: Context, profile: HostProfile, seen: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for method, names in seen.items():
        shown = frozenset(names)
        hidden = [name for name in ctx.lists[method].names(MEMBERS[method]) if name not in shown]
        if hidden:
            yield f"{len(hidden)} of `{method}` are not seen by this host: {', '.join(hidden[:8])}"
    if profile.note:
        yield profile.note
    yield from (f"{quirk.id}: {quirk.text}" for quirk in profile.quirks)
