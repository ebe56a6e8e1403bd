"""A walk through everything that upstreams can do: no served list stays old unannounced, and no name ever changes."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import MODERN, PATIENCE, Inbox, Legacy, Modern, serving
from middle_site import OLD, Site, site, until

from troth.gateway.limits import Limits
from troth.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from middle_gateway import Served

    from troth.gateway.fleet import Fleet

pytestmark = pytest.mark.anyio

FAMILIES = ("tools", "prompts", "resources")
STEPS = 30
ALL = {f"{family}ListChanged": True for family in FAMILIES}


@dataclass
class Watching:
    """A host, what it was served last, and the notifications that it got since."""

    peer: Legacy | Modern
    inboxes: list[Inbox] = field(default_factory=list)
    served: dict[str, list[Any]] = field(default_factory=dict)
    marks: dict[str, list[int]] = field(default_factory=dict)
    deaf: bool = False

    async def lists(self, family: str) -> list[Any]:
        marks = [len(inbox.all) for inbox in self.inboxes]
        self.served[family] = (await self.peer.ask(f"{family}/list")).result[family]
        self.marks[family] = marks
        return self.served[family]

    def told(self, family: str) -> bool:
        marks = [*self.marks[family], *[0] * len(self.inboxes)]
        method = f"notifications/{family}/list_changed"
        return any(method in inbox.methods()[mark:] for inbox, mark in zip(self.inboxes, marks, strict=False))

    async def hears(self) -> None:
        """A modern host that was deaf listens again."""
        if isinstance(self.peer, Modern):
            self.inboxes.append(await self.peer.listen(**ALL))
        self.deaf = False

    async def deafens(self) -> None:
        if isinstance(self.peer, Modern):
            await self.peer.close()
            self.deaf = True


class World:
    """Three upstreams of both eras, and who looks at them."""

    def __init__(self, sites: dict[str, Site], served: Served, hosts: list[Watching], chance: random.Random) -> None:
        self.sites = sites
        self.served = served
        self.hosts = hosts
        self.chance = chance
        self.configured = ["one"]
        self.denied: dict[str, tuple[str, ...]] = {}
        self.up = dict.fromkeys(sites, True)
        self.names: dict[tuple[str, str], tuple[str, str]] = {}

    @property
    def fleet(self) -> Fleet:
        (fleet,) = self.served.gateway.every_fleet()
        return fleet

    # What may happen

    def change(self) -> None:
        self.sites[self.chance.choice([*self.sites])].add(self.chance.choice(FAMILIES))

    def remove(self) -> None:
        def act(script: Any) -> None:
            if script.catalogue.remove_tool():
                script.announce("tools")

        self.sites[self.chance.choice([*self.sites])].do(act)

    async def flip(self) -> None:
        """An upstream goes, or comes back with the lists that it had at first."""
        name = self.chance.choice([*self.sites])
        self.up[name] = not self.up[name]
        await (self.sites[name].start() if self.up[name] else self.sites[name].stop())
        if not self.up[name] and name in self.configured:
            # Nothing says over HTTP that a server is gone, but a call.
            member = self.fleet.member(name)
            entry = next((one for one in self.fleet.known.entries("tools") if one.source == name), None)
            if member is not None and entry is not None and member.conversation is not None:
                await self.hosts[0].peer.call(entry.shown)
                await until(lambda: not member.listed)

    def reload(self) -> None:
        self.configured = self.chance.sample([*self.sites], self.chance.randint(1, 3))
        self.denied = {name: self.chance.choice(((), ("touch",), ("added_*",))) for name in self.sites}
        self.served.gateway.reload(self.settings())

    def settings(self) -> GatewaySettings:
        upstreams = tuple(self.sites[name].settings(name, deny=self.denied.get(name, ())) for name in self.configured)
        return GatewaySettings(upstreams=upstreams, startup_wait=PATIENCE)

    async def list(self) -> None:
        await self.chance.choice(self.hosts).lists(self.chance.choice(FAMILIES))

    async def listen(self) -> None:
        who = self.chance.choice(self.hosts)
        await (who.hears() if who.deaf else who.deafens())

    # What must hold

    async def settle(self) -> None:
        def quiet() -> bool:
            return self.fleet._telling is None and all(
                not member._fetching
                and member._soon is None
                and (not self.up[member.name] or (member.conversation is not None and not member._dirty))
                and (self.up[member.name] or not member.listed or not member.lists)
                for member in self.fleet.members
            )

        await until(quiet)

    async def check(self) -> None:
        await self.settle()
        for host in self.hosts:
            revision = MODERN if isinstance(host.peer, Modern) else OLD
            for family, old in host.served.items():
                now = [entry.line(revision) for entry in self.fleet.catalogue.entries(family)]  # type: ignore[arg-type]
                if len(now) != len(old) or [item.get("uri", item["name"]) for item in old] != [
                    entry.shown
                    for entry in self.fleet.catalogue.entries(family)  # type: ignore[arg-type]
                ]:
                    assert host.deaf or await until(lambda host=host, family=family: host.told(family))
        for kind in ("tools", "prompts", "resources", "templates"):
            for entry in self.fleet.known.entries(kind):
                known = self.names.setdefault((kind, entry.shown), (entry.source, entry.own))
                assert known == (entry.source, entry.own)


@pytest.mark.parametrize("seed", range(6))
async def test_no_served_list_stays_old_unannounced_and_no_name_ever_changes(seed: int) -> None:
    chance = random.Random(seed)
    limits = Limits(coalesce=0.005, back_off=0.02, back_off_most=0.04, stop=0.5, grace=0.02)
    async with AsyncExitStack() as stack:
        sites = {
            name: await stack.enter_async_context(site(revision))
            for name, revision in (("one", OLD), ("two", MODERN), ("three", OLD))
        }
        served = await stack.enter_async_context(serving(sites["one"].settings("one"), limits=limits))
        hosts: list[Watching] = []
        for peer in (served.legacy(), served.legacy("2024-11-05"), served.modern()):
            await stack.enter_async_context(peer)
            hosts.append(
                Watching(peer, [await peer.listen() if isinstance(peer, Legacy) else await peer.listen(**ALL)])
            )
        world = World(sites, served, hosts, chance)
        await world.check()
        acts = (
            world.change,
            world.change,
            world.remove,
            world.flip,
            world.reload,
            world.list,
            world.list,
            world.listen,
        )
        for _ in range(STEPS):
            for _ in range(chance.randint(1, 3)):
                done = chance.choice(acts)()
                if done is not None:
                    await done
            await world.check()
        for name, running in world.up.items():
            if not running:
                await sites[name].start()
                world.up[name] = True
        world.configured, world.denied = [*sites], {}
        served.gateway.reload(world.settings())
        await world.check()
        # The lone one was bare, and is; the others came later.
        shown = [entry.shown for entry in world.fleet.catalogue.entries("tools")]
        assert {"read_note", "two_read_note", "three_read_note"} <= set(shown)
        for host in hosts:
            for name in ("read_note", "two_read_note", "three_read_note"):
                assert (await host.peer.call(name)).result["content"]
