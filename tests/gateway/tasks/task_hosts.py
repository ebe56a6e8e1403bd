"""Hosts that know tasks, and servers whose tools are tasks."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from middle_gateway import MODERN, PATIENCE, Modern, serving
from middle_site import OLD, site

from troth.testing.model import SILENT, Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from middle_gateway import Legacy, Served, Told
    from middle_site import Site

    from troth.testing.model import Call
    from troth.testing.script import Script

EXTENSION = "io.modelcontextprotocol/tasks"
KNOWS = {"extensions": {EXTENSION: {}}}
DONE = [{"type": "text", "text": "The work is done."}]


class Extended(Modern):
    """A modern host that declares the extension."""

    def __init__(self, served: Served, **given: Any) -> None:
        super().__init__(served, **{"declares": KNOWS, **given})

    def headers(self, method: str, params: dict[str, Any] | None) -> dict[str, str]:
        named = {"mcp-name": (params or {})["taskId"]} if "taskId" in (params or {}) else {}
        return {**super().headers(method, params), **named}


@asynccontextmanager
async def tasked(revision: str, support: str = "required", **settings: Any) -> AsyncGenerator[tuple[Site, Served]]:
    """A server with a tool ``slow`` that takes tasks, and a gateway before it."""
    async with site(revision) as one:
        for tool in one.script.catalogue.tools:
            if tool["name"] == "slow":
                tool["execution"] = {"taskSupport": support}
        async with serving(one.settings("up"), **settings) as served:
            if not settings.get("tokens"):
                await served.ready()
            yield one, served


class Work:
    """The tasks of a server as the test moves them: they work until it says otherwise."""

    def __init__(self, one: Site) -> None:
        self.one = one
        self.status = "working"
        self.message = ""
        self.result: dict[str, Any] = {"content": DONE}
        self.error: dict[str, Any] | None = None
        self.more: dict[str, Any] = {}
        self.waiting: list[Call] = []
        self.legacy = one.revision == OLD
        one.answers["tasks/get"] = lambda _script, _call: self.task(_call.params["taskId"])
        one.answers["tasks/result"] = self._result

    def task(self, name: str) -> dict[str, Any]:
        stamps = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
        head = {"taskId": name, "status": self.status, **stamps}
        if self.message:
            head["statusMessage"] = self.message
        if self.legacy:
            return {**head, "ttl": 1000, "pollInterval": 20}
        ends: dict[str, Any] = {}
        if self.status == "completed":
            ends = {"result": {**self.result, "resultType": "complete"}}
        elif self.status == "failed":
            ends = {"error": self.error}
        return {**head, "ttlMs": 1000, "pollIntervalMs": 20, **ends, **self.more, "resultType": "complete"}

    def _result(self, _script: Script, call: Call) -> Any:
        if self.status == "working":
            self.waiting.append(call)
            return SILENT
        return self._end(call)

    def _end(self, call: Call) -> Any:
        if self.error is not None:
            return Refusal(self.error["code"], self.error["message"], self.error.get("data"))
        meta = {"io.modelcontextprotocol/related-task": {"taskId": call.params["taskId"]}}
        return {**self.result, "_meta": meta}

    def end(self, status: str = "completed", **changes: Any) -> None:
        """The work ends: the result that is waited for goes out."""
        self.status = status
        for name, value in changes.items():
            setattr(self, name, value)

        def act(script: Script) -> None:
            for call in self.waiting:
                script.respond(call, self._end(call))

        self.one.do(act)
        self.waiting.clear()


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA}}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


def asks(work: Work) -> list[dict[str, Any]]:
    """The work waits for input until that comes; what comes."""
    found: list[dict[str, Any]] = []
    work.status, work.more = "input_required", {"inputRequests": {"who": QUESTION}}

    def update(_script: object, call: Any) -> dict[str, Any]:
        found.append(call.params["inputResponses"])
        work.status, work.more = "completed", {}
        return {"resultType": "complete"}

    work.one.answers["tasks/update"] = update
    return found


async def ended(host: Legacy | Modern, name: str, wanted: Callable[[dict[str, Any]], bool] | None = None) -> Told:
    """Looks at a task until it has ended, or is as wanted."""
    with anyio.fail_after(PATIENCE):
        while True:
            told = await host.ask("tasks/get", {"taskId": name})
            status = told.result["status"]
            if wanted(told.result) if wanted else status in ("completed", "failed", "cancelled"):
                return told
            await anyio.sleep(0.01)


def _id(result: dict[str, Any]) -> str:
    return result["task"]["taskId"] if "task" in result else result["taskId"]


def knowing(served: Served, revision: str, **given: Any) -> Legacy | Modern:
    """A host of a revision that knows its tasks."""
    return Extended(served, **given) if revision == MODERN else served.legacy(revision, **given)


async def begin(host: Legacy | Modern, name: str = "slow", **task: Any) -> str:
    """Has a tool run as a task; its id."""
    extra = {} if isinstance(host, Modern) else {"task": task}
    return _id((await host.call(name, **extra)).result)
