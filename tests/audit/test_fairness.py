"""No honest server is accused, and nothing that was not delivered is called kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import memory
import pytest

from troth.audit.model import Outcome, Severity, TargetReport, Verdict
from troth.testing import Script, Send
from troth.testing.stdio import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memory import Server

LEGACY, MODERN = "2025-11-25", "2026-07-28"
REFUSED = {"error": {"code": -32603, "message": "no"}}


def but(change: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> Callable[[], Server]:
    """Makes servers that are honest but for the answers that ``change`` gives in place of theirs."""

    def make() -> Server:
        script = Script()

        def server(message: Any) -> Iterator[Any]:
            for out in script.feed(message, CONTEXT):
                if isinstance(out, Send):
                    answers = isinstance(out.message, dict) and out.message.get("id") == message.get("id")
                    yield change(message, out.message) if answers else out.message

        return server

    return make


def refusing(method: str, **answer: Any) -> Callable[[Any, dict[str, Any]], dict[str, Any]]:
    """Answers one method alike, always."""
    return lambda asked, honest: (
        {"jsonrpc": "2.0", "id": asked["id"], **answer} if asked.get("method") == method else honest
    )


def row(report: TargetReport, revision: str, name: str) -> Any:
    return next(row for row in report.revisions[revision].rows if row.id == name)


def codes(report: TargetReport, revision: str) -> set[str]:
    return {finding.code for finding in report.revisions[revision].findings}


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [(None, Verdict.PARTIAL), ([{"name": "who", "required": True}], Verdict.NOT_OBSERVABLE)],
)
def test_prompts_that_are_all_refused_are_not_kept(revision: str, arguments: Any, verdict: Verdict) -> None:
    entry = {"name": "greet", **({"arguments": arguments} if arguments else {})}

    def change(asked: Any, honest: dict[str, Any]) -> dict[str, Any]:
        if asked.get("method") == "prompts/list":
            kept = {key: value for key, value in honest["result"].items() if key != "nextCursor"}
            return {**honest, "result": {**kept, "prompts": [entry]}}
        return refusing("prompts/get", **REFUSED)(asked, honest)

    assert row(memory.audit(but(change), [revision]), revision, "CAP-14").verdict is verdict


def test_tools_that_lack_arguments_are_named_where_nothing_was_asked() -> None:
    tools = [
        {"name": name, "inputSchema": {"type": "object", "required": ["a"]}, "annotations": {"readOnlyHint": True}}
        for name in ("one", "two", "three", "four")
    ]
    make = but(refusing("tools/list", result={"tools": tools}))
    hint = row(memory.audit(make, [LEGACY]), LEGACY, "CAP-04").hint
    assert hint.endswith(
        "Not called, since they need arguments (--change-tool 'NAME={...}'): one, two, three and 1 more."
    )


@pytest.mark.parametrize("revisions", [[MODERN], [LEGACY, MODERN]])
def test_a_server_that_never_starts_has_no_era(revisions: list[str]) -> None:
    def dead() -> Server:
        def server(_: Any) -> Iterator[Any]:
            raise EOFError
            yield

        return server

    report = memory.audit(dead, revisions)
    found = {report.outcome, *(revision.outcome for revision in report.revisions.values())}
    assert found == {Outcome.DID_NOT_START}


def test_a_server_that_takes_no_further_handshake_is_not_accused_of_refusing_versions_or_capabilities() -> None:
    made: list[Server] = []

    def make() -> Server:
        made.append(but(lambda _, honest: honest)())
        # The first two are the conversations themselves.
        return made[-1] if len(made) <= 2 else but(refusing("initialize", **REFUSED))()

    assert not codes(memory.audit(make, [LEGACY]), LEGACY) & {
        "negotiation.unknown-version",
        "declaration.client-refused",
    }


def test_an_unknown_task_refused_in_words_of_its_own_shows_a_handler() -> None:
    def change(asked: Any, honest: dict[str, Any]) -> dict[str, Any]:
        unknown = {"code": -32602, "message": "Invalid request parameters"}
        return {**honest, "error": unknown} if asked.get("method") == "troth/unknown" else honest

    assert row(memory.audit(but(change), [LEGACY]), LEGACY, "CAP-23").verdict is Verdict.KEPT


@pytest.mark.parametrize(("steady", "accused"), [(False, False), (True, True)])
def test_a_list_that_others_change_between_two_readings_depends_on_no_client(*, steady: bool, accused: bool) -> None:
    reads: list[bool] = []

    def change(asked: Any, honest: dict[str, Any]) -> dict[str, Any]:
        if asked.get("method") != "tools/list" or "result" not in honest:
            return honest
        bare = not asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        reads.append(bare)
        # A list that depends on the client is shorter for one that declares nothing; this one shrinks at that moment.
        few = bare if steady else any(reads)
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("one", "two")[: 1 if few else 2]]
        cache = {"resultType": "complete", "ttlMs": 5, "cacheScope": "public"}
        return {**honest, "result": {"tools": tools, **cache}}

    report = memory.audit(but(change), [MODERN])
    assert ("cache.public-varies" in codes(report, MODERN)) is accused


def watchable(*uris: str) -> Callable[[], Server]:
    """Makes servers that take subscriptions to these resources only, as one does that stands for several others."""

    def make() -> Server:
        script = Script()

        def server(message: Any) -> Iterator[Any]:
            asked = message.get("params", {}).get("uri")
            if message.get("method") == "resources/subscribe" and asked not in uris:
                error = {"code": -32602, "message": "nobody tells of its updates"}
                yield {"jsonrpc": "2.0", "id": message["id"], "error": error}
                return
            for out in script.feed(message, CONTEXT):
                if isinstance(out, Send):
                    params = out.message.get("params", {})
                    if out.message.get("method") == "notifications/subscriptions/acknowledged":
                        named = params["notifications"].get("resourceSubscriptions", [])
                        params["notifications"]["resourceSubscriptions"] = [uri for uri in named if uri in uris]
                    yield out.message

        return server

    return make


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_server_that_takes_subscriptions_to_some_resources_is_judged_by_those(revision: str) -> None:
    report = memory.audit(watchable("note://notes/two"), [revision])
    assert row(report, revision, "CAP-17").verdict is Verdict.NOT_OBSERVABLE
    (found,) = [one for one in report.revisions[revision].findings if one.code == "resources.not-watchable"]
    assert "'note://notes/one'" in found.message
    assert found.severity is Severity.NOTE


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_server_that_takes_no_subscription_is_broken(revision: str) -> None:
    report = memory.audit(watchable(), [revision])
    found = row(report, revision, "CAP-17")
    assert found.verdict is Verdict.BROKEN
    assert "resources.not-watchable" not in codes(report, revision)
    assert "note://notes/one" in str(found)
