"""What the rules of the audit demand of a captured server, derived from the summary of the capture alone.

``expected(capture)`` gives, row by row, the verdicts that are right. Mostly it is one. Several mean that the capture
leaves open what an auditor that calls no tool with effects can see; a row that the capture cannot decide at all is
left out. Nothing here imports the audit.
"""

from __future__ import annotations

from typing import Any

ABSENT, KEPT, EMPTY, PARTIAL, BROKEN = "absent", "kept", "empty", "partial", "broken"
UNDECLARED, LEAKED, WRONG, UNSEEN = "undeclared", "leaked", "wrong-code", "not-observable"
NOT_FOUND = -32601
MODERN = ("2026-07-28",)
COMPLETIONS = ("2025-03-26", "2025-06-18", "2025-11-25", *MODERN)
TASKS = ("2025-11-25",)
TASKS_KEY, UI_KEY = "io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui"

Rows = dict[str, frozenset[str]]


class Summary:
    """Questions to the summary of a capture."""

    def __init__(self, capture: dict[str, Any], *, http: bool = False, called: bool = False) -> None:
        self.capture = capture
        self.called = called
        self.http = http
        no_stream = (capture.get("http_status") or {}).get("GET") == 405 and not capture.get("session")
        self.undeliverable = http and no_stream
        """Nothing of the server's own can reach the client: no stream to it, and no session to open one in."""
        self.revision: str = capture["negotiated"]
        self.modern = self.revision in MODERN
        self.declared: dict[str, Any] = capture["capabilities"] or {}
        self.methods: dict[str, dict[str, Any]] = capture["methods"]

    def asked(self, method: str) -> bool:
        return method in self.methods and not self.methods[method].get("timeout")

    def ok(self, method: str) -> bool:
        return bool(self.methods.get(method, {}).get("ok"))

    def code(self, method: str) -> int | None:
        return self.methods.get(method, {}).get("code")

    def count(self, method: str) -> int:
        return self.methods.get(method, {}).get("n", 0)

    def has(self, *path: str) -> Any:
        value: Any = self.declared
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def seen(self, notification: str, *, by_calls: bool) -> bool:
        """Whether a notification came, because of calls that an auditor need not make, or otherwise.

        The capturing probe first sent what anybody may send, and then called tools (from the mark ``triggers`` on).
        """
        marked = next((at for at, mark in self.capture["marks"] if mark == "triggers"), float("inf"))
        calls = float("inf") if self.called else marked
        return any(
            (entry["t"] >= calls) is by_calls
            for entry in self.capture["log"]
            if entry["dir"] == "<" and entry["msg"].get("method") == notification
        )

    @property
    def acknowledged(self) -> dict[str, Any] | None:
        """What ``subscriptions/listen`` promised when everything was asked; None where it was refused."""
        return (self.capture.get("listen_ack") or {}).get("notifications")


def one(*verdicts: str) -> frozenset[str]:
    return frozenset(verdicts)


def refused(summary: Summary, *methods: str) -> frozenset[str]:
    """The verdict on something undeclared, from the methods that it gates."""
    asked = [method for method in methods if summary.asked(method)]
    if any(summary.ok(method) for method in asked):
        return one(UNDECLARED)
    wrong = [method for method in asked if summary.code(method) != NOT_FOUND]
    if not wrong:
        return one(ABSENT)
    # A bad parameter may be refused before the method is looked up: that says nothing of the method.
    real = [method for method in wrong if not method.endswith(("(absent)", "(bad)"))]
    return one(WRONG) if real else one(WRONG, ABSENT)


def logging(summary: Summary) -> frozenset[str]:
    message = "notifications/message"
    freely, by_calls = summary.seen(message, by_calls=False), summary.seen(message, by_calls=True)
    if summary.has("logging") is None:
        if freely and not summary.modern:
            return one(UNDECLARED)
        verdicts = one(ABSENT, UNDECLARED) if freely else one(ABSENT)
        verdicts = verdicts if summary.modern else refused(summary, "logging/setLevel")
        return verdicts | one(UNDECLARED) if by_calls else verdicts
    if summary.modern:
        return one(UNSEEN, KEPT) if by_calls or freely else one(UNSEEN)
    if not summary.ok("logging/setLevel"):
        return one(BROKEN)
    if freely:
        return one(KEPT)
    return one(UNSEEN, KEPT) if by_calls else one(UNSEEN)


def completions(summary: Summary) -> frozenset[str]:
    prompt, template = "completion/complete(prompt)", "completion/complete(template)"
    real = [template] if summary.capture["templates"] else []
    real += [prompt] if summary.capture["prompts"] else []
    if summary.has("completions") is None:
        if summary.revision not in COMPLETIONS:
            return one(ABSENT, UNDECLARED, WRONG)
        verdicts = refused(summary, *(real or [prompt]))
        return verdicts if real or verdicts != one(WRONG) else one(WRONG, ABSENT)
    if summary.revision not in COMPLETIONS:
        return one(LEAKED)
    codes = {summary.code(method) for method in (*real, prompt) if summary.asked(method)}
    if NOT_FOUND in codes:
        return one(BROKEN)
    values = [summary.capture.get(key) for key in ("completion_prompt", "completion_template")]
    if any(isinstance(value, dict) and value.get("values") for value in values):
        return one(KEPT)
    return one(KEPT, UNSEEN)


def prompts(summary: Summary) -> frozenset[str]:
    if summary.has("prompts") is None:
        return refused(summary, "prompts/list", "prompts/get(absent)")
    if not summary.ok("prompts/list"):
        return one(BROKEN)
    return one(KEPT) if summary.count("prompts/list") else one(EMPTY)


def resources(summary: Summary) -> frozenset[str]:
    lists = ("resources/list", "resources/templates/list")
    if summary.has("resources") is None:
        return refused(summary, *lists, "resources/read(absent)")
    served = [method for method in lists if summary.ok(method)]
    if not served:
        return one(BROKEN)
    if len(served) < len(lists) or (summary.asked("resources/read(first)") and not summary.ok("resources/read(first)")):
        return one(PARTIAL)
    return one(KEPT) if any(summary.count(method) for method in lists) else one(EMPTY)


def tools(summary: Summary) -> frozenset[str]:
    if summary.has("tools") is None:
        return refused(summary, "tools/list", "tools/call(absent)")
    if not summary.ok("tools/list"):
        return one(BROKEN)
    if summary.code("tools/call(absent)") == NOT_FOUND:
        return one(PARTIAL, BROKEN)
    return one(KEPT) if summary.count("tools/list") else one(EMPTY)


def list_changed(summary: Summary, family: str) -> frozenset[str]:
    note = f"notifications/{family}/list_changed"
    declared = summary.has(family, "listChanged")
    quiet = one(ABSENT) if declared is None else one(ABSENT, KEPT)
    freely, by_calls = summary.seen(note, by_calls=False), summary.seen(note, by_calls=True)
    if summary.modern:
        promised = (summary.acknowledged or {}).get(f"{family}ListChanged")
        if declared is not True:
            return one(UNDECLARED) if promised else quiet
        return one(KEPT, UNSEEN) if promised else one(BROKEN)
    if declared is not True:
        return one(UNDECLARED) if freely else quiet | one(UNDECLARED) if by_calls else quiet
    if summary.undeliverable:
        return one(BROKEN)
    if freely:
        return one(KEPT)
    # What is sent before the stream for it is open is lost, so that one client sees it and another does not.
    return one(UNSEEN, KEPT) if by_calls or summary.http else one(UNSEEN)


def subscribe(summary: Summary) -> frozenset[str]:
    declared = summary.has("resources", "subscribe")
    quiet = one(ABSENT) if declared is None else one(ABSENT, KEPT)
    calls = ("resources/subscribe", "resources/unsubscribe")
    if summary.modern:
        promised = (summary.acknowledged or {}).get("resourceSubscriptions")
        if declared is not True:
            return one(UNDECLARED) if promised else quiet
        return one(KEPT, UNSEEN) if promised else one(BROKEN)
    update = "notifications/resources/updated"
    updated = summary.seen(update, by_calls=True)
    if declared is not True:
        if summary.seen(update, by_calls=False):
            return one(UNDECLARED, "ungated")
        verdicts = refused(summary, *calls)
        verdicts = quiet if verdicts == one(ABSENT) else verdicts
        return verdicts | one(UNDECLARED, "ungated") if updated else verdicts
    if not summary.capture["resources"] and summary.code(calls[0]) not in (None, NOT_FOUND):
        return one(BROKEN, UNSEEN)
    if not summary.ok(calls[0]):
        return one(BROKEN)
    return one(KEPT, UNSEEN) if summary.ok(calls[1]) else one(PARTIAL)


def tasks(summary: Summary) -> Rows:
    if summary.revision not in TASKS:
        return {"CAP-21": one(LEAKED)} if summary.has("tasks") is not None else {}
    listed, cancelled, got = "tasks/list", "tasks/cancel(absent)", "tasks/get(absent)"
    if summary.has("tasks") is None:
        return {"CAP-21": refused(summary, listed) | refused(summary, got)}
    if not summary.has("tasks"):
        return {"CAP-21": one(EMPTY)}
    rows: Rows = {"CAP-21": one(BROKEN, PARTIAL) if summary.code(got) == NOT_FOUND else one(KEPT)}
    if summary.has("tasks", "list") is not None:
        rows["CAP-22"] = one(KEPT) if summary.ok(listed) else one(BROKEN)
    if summary.has("tasks", "cancel") is not None:
        rows["CAP-23"] = one(BROKEN) if summary.code(cancelled) == NOT_FOUND else one(KEPT)
    if summary.has("tasks", "requests", "tools", "call") is not None:
        offered = [support for support in summary.capture["taskSupport"].values() if support != "forbidden"]
        taken = any(
            (support or {}).get("taskSupport") in ("optional", "required")
            for support in offered
            if isinstance(support, dict)
        )
        rows["CAP-24"] = one(UNSEEN, KEPT) if taken else one(BROKEN)
    return rows


def extensions(summary: Summary) -> Rows:
    declared = summary.has("extensions")
    if not summary.modern:
        return {"CAP-25": one(LEAKED)} if declared is not None else {}
    rows: Rows = {}
    if declared is None or TASKS_KEY not in declared:
        rows["CAP-26-server"] = refused(summary, "tasks/get(absent)", "tasks/cancel(absent)", "tasks/update(absent)")
    else:
        rows["CAP-26-server"] = one(BROKEN) if summary.code("tasks/get(absent)") == NOT_FOUND else one(KEPT, UNSEEN)
    if declared is not None and UI_KEY in declared:
        shown = any(str(uri).startswith("ui://") for uri in summary.capture["resources"])
        rows["XE-ui-server"] = one(KEPT, UNSEEN) if shown else one(EMPTY)
    return rows


def experimental(summary: Summary) -> Rows:
    declared = summary.has("experimental")
    return {} if declared == {} else {"CAP-01-server": one(ABSENT) if declared is None else one(KEPT, UNSEEN)}


QUESTIONS = {"roots/list": "CAP-02", "sampling/createMessage": "CAP-04", "elicitation/create": "CAP-07"}
ELICITATION = ("2025-06-18", *TASKS, *MODERN)


def questions(capture: dict[str, Any]) -> Rows:
    """What a server may ask, from what it asked of a client that had declared nothing."""
    asked = {request["method"] for request in capture["server_requests"]}
    rows: Rows = {}
    for method, row in QUESTIONS.items():
        if row != "CAP-07" or capture["negotiated"] in ELICITATION:
            rows[row] = one("ungated") if method in asked else one(KEPT, ABSENT, UNSEEN)
    return rows


def expected(
    capture: dict[str, Any], *, http: bool = False, called: bool = False, bare: dict[str, Any] | None = None
) -> Rows | None:
    """The right verdicts by row id; None where the server does not serve the revision that was asked.

    Args:
        capture: As in the file.
        http: Whether the audit speaks HTTP too; a capture that is replayed over stdio has lost that.
        called: Whether the audit calls every tool, as the capturing probe did.
        bare: The capture of the same server for a client without capabilities.
    """
    if capture["negotiated"] is None:
        return None
    summary = Summary(capture, http=http, called=called)
    return {
        "CAP-12": logging(summary),
        "CAP-13": completions(summary),
        "CAP-14": prompts(summary),
        "CAP-15": list_changed(summary, "prompts"),
        "CAP-16": resources(summary),
        "CAP-17": subscribe(summary),
        "CAP-18": list_changed(summary, "resources"),
        "CAP-19": tools(summary),
        "CAP-20": list_changed(summary, "tools"),
        **experimental(summary),
        **tasks(summary),
        **extensions(summary),
        **(questions(bare) if bare is not None and called else {}),
    }
