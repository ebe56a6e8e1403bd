"""Tasks that outlived the run of the gateway which made them, because their upstream keeps them by itself.

That holds for tasks of the extension over HTTP: they belong to no session. The upstream's id was kept beside ours, so
the work goes on as if the call had just been answered with it. Calls of hosts that know no tasks are over: what an
upstream still does for one is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

import msgspec

from troth.bridge import ask, read, request_line
from troth.bridge.listed import Entry
from troth.bridge.outgoing import Outgoing
from troth.bridge.promise import TASKS_KEY, with_tasks
from troth.capabilities import read_client
from troth.gateway.asked import Asked
from troth.gateway.model import Host, Principal, UnavailableError
from troth.gateway.relaying import Target, place
from troth.gateway.tasks.kept import place_of, read_kept
from troth.gateway.tasks.room import Passing
from troth.register import Era, register
from troth.tasks import Outcome, StoreError
from troth.tasks.engine import LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from troth.bridge import Frame
    from troth.gateway.gateway import Gateway
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation
    from troth.gateway.tasks.awaiting import Made
    from troth.gateway.tasks.kept import Kept
    from troth.tasks import Job, Task

_log = logging.getLogger(__name__)

AGAIN: Final = 1.0
"""Seconds between two looks for an upstream that is not reachable. Its supervisor has pauses of its own."""


class Resuming:
    """Goes on with tasks of earlier runs.

    Args:
        gateway: This run.
        principals: Tells everybody who may speak to it now.
    """

    def __init__(self, gateway: Gateway, principals: Callable[[], Iterable[Principal]]) -> None:
        self._gateway = gateway
        self._principals = principals

    def takes(self, task: Task) -> bool | None:
        """Whether this run goes on with a task; None if that is for another gateway.

        Gateways with other configurations and other principals may share a folder. Those of our principals alone can
        ask us what became of it.
        """
        kept = _kept(task)
        if kept is None or not kept.task or not kept.place:
            return False
        settings = self._gateway.settings
        if kept.config != (settings.path or "") or self._known(kept.awaited or task.owner) is None:
            return None
        return any(one.name == kept.upstream and place_of(one) == kept.place for one in settings.upstreams)

    def go_on(self, task: Task) -> None:
        """Goes on with a task that was taken; one that nobody has is cancelled."""
        kept = cast("Kept", _kept(task))
        if kept.awaited:
            self._gateway.crew.spawn(self._give_up(task, kept), f"a task of {kept.upstream} that nobody awaits")
        else:
            self._gateway.tasks.spawn(task, kept.upstream, lambda job: self._work(job, kept))

    async def _work(self, job: Job, kept: Kept) -> Outcome:
        tasks, task = self._gateway.tasks, job.task
        host = self._host(kept, task.owner)
        try:
            owner, conversation = await self._reached(kept, host)
        except asyncio.CancelledError:
            self._gateway.crew.spawn(self._ended(kept, host), f"a task of {kept.upstream} that was cancelled")
            raise
        if conversation is None or owner is None:
            return Outcome(error=LOST)
        fleet = self._gateway.fleet(host.principal, host.asks)
        name = {"name": kept.tool}
        frame = cast("Frame", read(request_line(0, task.method, name)))
        asked = Asked(self._gateway, frame, host, None, fleet, fleet.promised_to(host), Passing())
        entry = Entry(kind="tools", shown=kept.tool, source=owner.name, prefix=owner.prefix, own=kept.tool)
        there = place(Target(entry, owner, conversation, name, kept.tool, None))
        way = tasks.in_rounds if host.era is Era.MODERN else tasks.by_requests

        async def first(made: Made) -> None:
            if made.status != "input_required":
                await job.settle()

        return await way(asked, there, tasks.said(task, first), kept.task)(job)

    async def _ended(self, kept: Kept, host: Host) -> None:
        """Cancels the upstream's task of one that its host cancelled before the upstream was reached."""
        if not self._gateway.tasks.stopping:
            await self._cancel(kept, host)

    async def _give_up(self, task: Task, kept: Kept) -> None:
        await self._cancel(kept, self._host(kept, kept.awaited))
        try:
            await self._gateway.tasks.engine.forget(task.id)
        except StoreError as error:
            _log.error("a task that nobody has cannot be forgotten: %s", error)

    async def _cancel(self, kept: Kept, host: Host) -> None:
        """Tells the upstream once, if it can be reached."""
        owner = self._owner(kept, host)
        if owner is None:
            return
        try:
            conversation = await owner.upstream.ready(self._gateway.limits.method)
            frame = ask("tasks/cancel", {"taskId": kept.task})
            wish = Outgoing(frame=frame, name=kept.task, declares=with_tasks(None), timeout=self._gateway.limits.method)
            await conversation.ask(wish)
        except UnavailableError as error:
            _log.info("upstream %s: a task that nobody awaits is left to itself: %s", kept.upstream, error)

    async def _reached(self, kept: Kept, host: Host) -> tuple[Member | None, Conversation | None]:
        """The upstream, as soon as it is there; None where it is another one now."""
        while True:
            owner = self._owner(kept, host)
            if owner is None:
                return None, None
            try:
                conversation = await owner.upstream.ready(self._gateway.limits.method)
            except UnavailableError:
                await asyncio.sleep(AGAIN)
                continue
            return (owner, conversation) if conversation.capabilities.has(TASKS_KEY) else (None, None)

    def _owner(self, kept: Kept, host: Host) -> Member | None:
        """The upstream; None where it is another one now, or its principal may speak to us no more."""
        if self._known(host.principal.name) is None:
            return None
        owner = self._gateway.fleet(host.principal, host.asks).member(kept.upstream)
        return owner if owner is not None and place_of(owner.settings) == kept.place else None

    def _known(self, name: str) -> Principal | None:
        return next((principal for principal in self._principals() if principal.name == name), None)

    def _host(self, kept: Kept, name: str) -> Host:
        """The host that asked, as far as its task needs it."""
        return Host(
            principal=self._known(name) or Principal(name),
            revision=kept.revision,
            era=register().era(kept.revision),
            capabilities=read_client({}, kept.revision),
            asks=frozenset(kept.asks),
            name="",
            transport="",
        )


def _kept(task: Task) -> Kept | None:
    try:
        return read_kept(task.keep)
    except msgspec.MsgspecError:
        return None
