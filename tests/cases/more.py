"""Further cases of the same format as the public ones: other rows, revisions and kinds of fault.

``expect`` names verdicts by row (several, if more than one is right, are joined by ``|``), the ``era`` that is decided,
``findings`` that must be among those reported, ``clean``: that nothing at all is held against the server, the
``outcome`` of an audit that cannot be made, and a word of its ``reason``.
"""

from __future__ import annotations

from typing import Any

NOV25, JUN25, MAR25, NOV24, MODERN = "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2026-07-28"
NOT_FOUND = {"error": [-32601, "Method not found"]}
TASKS_KEY, UI_KEY = "io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui"
COMPLETE = {"resultType": "complete"}
META = "io.modelcontextprotocol/"


def note(name: str, **params: Any) -> dict[str, Any]:
    return {"method": f"notifications/{name}", **({"params": params} if params else {})}


def sampling() -> dict[str, Any]:
    content = {"type": "text", "text": "q"}
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": content}], "maxTokens": 5},
    }


def elicitation(**more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    return {"method": "elicitation/create", "params": {"message": "name?", "requestedSchema": schema, **more}}


Case = tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]

REFUSED: list[Case] = [
    ("prompts-list-missing", NOV24, {"prompts": {}}, {"prompts/list": NOT_FOUND}, {"CAP-14": "broken"}),
    ("prompts-get-missing", JUN25, {"prompts": {}}, {"prompts/get": NOT_FOUND}, {"CAP-14": "partial"}),
    ("tools-list-missing", MAR25, {"tools": {}}, {"tools/list": NOT_FOUND}, {"CAP-19": "broken"}),
    ("tools-list-fails", NOV25, {"tools": {}}, {"tools/list": {"error": [-32603, "oops"]}}, {"CAP-19": "broken"}),
    ("tools-call-missing", NOV25, {"tools": {}}, {"tools/call": NOT_FOUND}, {"CAP-19": "partial|broken"}),
    (
        "resources-read-fails",
        NOV25,
        {"resources": {}},
        {"resources/read": {"error": [-32603, "oops"]}},
        {"CAP-16": "partial"},
    ),
    ("resources-list-missing", JUN25, {"resources": {}}, {"resources/list": NOT_FOUND}, {"CAP-16": "partial|broken"}),
    (
        "templates-missing-modern",
        MODERN,
        {"resources": {}},
        {"resources/templates/list": NOT_FOUND},
        {"CAP-16": "partial"},
    ),
    (
        "resources-all-missing-modern",
        MODERN,
        {"resources": {}},
        {"resources/list": NOT_FOUND, "resources/templates/list": NOT_FOUND, "resources/read": NOT_FOUND},
        {"CAP-16": "broken"},
    ),
    (
        "unsubscribe-missing",
        NOV25,
        {"resources": {"subscribe": True}},
        {"resources/unsubscribe": NOT_FOUND},
        {"CAP-17": "partial"},
    ),
    (
        "subscribe-missing-2024",
        NOV24,
        {"resources": {"subscribe": True}},
        {"resources/subscribe": NOT_FOUND, "resources/unsubscribe": NOT_FOUND},
        {"CAP-17": "broken"},
    ),
    (
        "subscribe-fails",
        JUN25,
        {"resources": {"subscribe": True}},
        {"resources/subscribe": {"error": [-32603, "oops"]}},
        {"CAP-17": "broken"},
    ),
    (
        "level-fails-2024",
        NOV24,
        {"logging": {}},
        {"logging/setLevel": {"error": [-32603, "oops"]}},
        {"CAP-12": "broken"},
    ),
    (
        "level-hangs",
        NOV25,
        {"logging": {}},
        {"logging/setLevel": "drop"},
        {"CAP-12": "broken", "findings": ["protocol.hangs"]},
    ),
    (
        "completions-missing-modern",
        MODERN,
        {"completions": {}, "prompts": {}},
        {"completion/complete": NOT_FOUND},
        {"CAP-13": "broken"},
    ),
    ("tools-hang", JUN25, {"tools": {}}, {"tools/list": "drop"}, {"CAP-19": "broken", "findings": ["protocol.hangs"]}),
]

WRONG_SHAPE: list[Case] = [
    ("tools-result-empty", MODERN, {"tools": {}}, {"tools/list": {"result": COMPLETE}}, {"CAP-19": "broken"}),
    ("tools-result-null", NOV25, {"tools": {}}, {"tools/list": {"result": {"tools": None}}}, {"CAP-19": "broken"}),
    ("prompts-result-list", JUN25, {"prompts": {}}, {"prompts/list": {"result": []}}, {"CAP-14": "broken"}),
    (
        "prompts-nameless",
        NOV25,
        {"prompts": {}},
        {"prompts/list": {"result": {"prompts": [{"title": "x"}]}}},
        {"CAP-14": "broken|partial"},
    ),
    (
        "completion-empty-object",
        MAR25,
        {"completions": {}, "prompts": {}},
        {"completion/complete": {"result": {}}},
        {"CAP-13": "broken"},
    ),
    (
        "completion-101-values",
        JUN25,
        {"completions": {}, "prompts": {}},
        {"completion/complete": {"result": {"completion": {"values": ["v"] * 101}}}},
        {"CAP-13": "broken|partial"},
    ),
    (
        "completion-values-text",
        NOV25,
        {"completions": {}, "prompts": {}},
        {"completion/complete": {"result": {"completion": {"values": "alpha"}}}},
        {"CAP-13": "broken"},
    ),
    (
        "completion-values-numbers",
        NOV25,
        {"completions": {}, "prompts": {}},
        {"completion/complete": {"result": {"completion": {"values": [1, 2]}}}},
        {"CAP-13": "broken"},
    ),
    (
        "completion-no-values",
        NOV25,
        {"completions": {}, "prompts": {}},
        {"completion/complete": {"result": {"completion": {"values": []}}}},
        {"CAP-13": "kept|not-observable"},
    ),
    ("read-without-contents", NOV25, {"resources": {}}, {"resources/read": {"result": {}}}, {"CAP-16": "partial"}),
    ("tasks-list-wrong", NOV25, {"tasks": {"list": {}}}, {"tasks/list": {"result": {}}}, {"CAP-22": "broken"}),
]

EMPTY: list[Case] = [
    (
        "tools-none",
        MODERN,
        {"tools": {}},
        {"tools/list": {"result": {**COMPLETE, "tools": [], "ttlMs": 0, "cacheScope": "private"}}},
        {"CAP-19": "empty"},
    ),
    ("prompts-none-2024", NOV24, {"prompts": {}}, {"prompts/list": {"result": {"prompts": []}}}, {"CAP-14": "empty"}),
    ("templates-only", MAR25, {"resources": {}}, {"resources/list": {"result": {"resources": []}}}, {"CAP-16": "kept"}),
    ("ui-without-a-ui", MODERN, {"tools": {}, "extensions": {UI_KEY: {}}}, {}, {"XE-ui-server": "empty"}),
]

SERVED: list[Case] = [
    (
        "prompts-served",
        JUN25,
        {"tools": {}},
        {"prompts/list": {"result": {"prompts": [{"name": "p"}]}}},
        {"CAP-14": "undeclared"},
    ),
    (
        "resources-served-modern",
        MODERN,
        {"tools": {}},
        {"resources/list": {"result": {**COMPLETE, "resources": [], "ttlMs": 0, "cacheScope": "private"}}},
        {"CAP-16": "undeclared"},
    ),
    (
        "templates-served",
        NOV25,
        {"tools": {}},
        {"resources/templates/list": {"result": {"resourceTemplates": []}}},
        {"CAP-16": "undeclared"},
    ),
    ("call-served", NOV24, {"prompts": {}}, {"tools/call": {"result": {"content": []}}}, {"CAP-19": "undeclared"}),
    (
        "completion-served",
        NOV25,
        {"prompts": {}},
        {"completion/complete": {"result": {"completion": {"values": ["a"]}}}},
        {"CAP-13": "undeclared"},
    ),
    ("level-served", MAR25, {"tools": {}}, {"logging/setLevel": {"result": {}}}, {"CAP-12": "undeclared"}),
    (
        "subscribe-served-2024",
        NOV24,
        {"resources": {}},
        {"resources/subscribe": {"result": {}}, "resources/unsubscribe": {"result": {}}},
        {"CAP-17": "undeclared"},
    ),
    ("tasks-served", NOV25, {"tools": {}}, {"tasks/list": {"result": {"tasks": []}}}, {"CAP-21": "undeclared"}),
    (
        "level-served-modern",
        MODERN,
        {"logging": {}, "tools": {}},
        {"logging/setLevel": {"result": COMPLETE}},
        {"findings": ["method.removed-served"]},
    ),
    (
        "ping-served-modern",
        MODERN,
        {"tools": {}},
        {"ping": {"result": COMPLETE}},
        {"findings": ["method.removed-served"]},
    ),
    (
        "subscribe-served-modern",
        MODERN,
        {"resources": {}},
        {"resources/subscribe": {"result": COMPLETE}},
        {"findings": ["method.removed-served"]},
    ),
]

SENT: list[Case] = [
    (
        "message-sent",
        NOV25,
        {"tools": {}},
        {"emit_on_call": [note("message", level="info", data="x")]},
        {"CAP-12": "undeclared"},
    ),
    (
        "message-sent-at-start",
        JUN25,
        {"tools": {}},
        {"emit_on_start": [note("message", level="info", data="x")]},
        {"CAP-12": "undeclared"},
    ),
    (
        "message-sent-modern",
        MODERN,
        {"tools": {}},
        {"emit_on_call": [note("message", level="info", data="x")]},
        {"CAP-12": "undeclared|ungated"},
    ),
    (
        "prompts-changed-sent",
        NOV24,
        {"prompts": {}, "tools": {}},
        {"emit_on_call": [note("prompts/list_changed")]},
        {"CAP-15": "undeclared"},
    ),
    (
        "tools-changed-sent",
        MAR25,
        {"tools": {"listChanged": False}},
        {"emit_on_call": [note("tools/list_changed")]},
        {"CAP-20": "undeclared"},
    ),
    (
        "tools-changed-sent-at-start",
        NOV25,
        {"tools": {}},
        {"emit_on_start": [note("tools/list_changed")]},
        {"CAP-20": "undeclared"},
    ),
    (
        "changed-sent-modern",
        MODERN,
        {"tools": {"listChanged": True}},
        {"emit_on_call": [note("tools/list_changed")]},
        {"CAP-20": "ungated|kept|not-observable", "findings": ["listen.untagged"]},
    ),
    (
        "updated-sent",
        NOV25,
        {"resources": {}, "tools": {}},
        {"emit_on_call": [note("resources/updated", uri="probe://one")]},
        {"CAP-17": "undeclared|ungated"},
    ),
    (
        "resources-changed-modern",
        MODERN,
        {"resources": {}, "tools": {}},
        {"emit_on_call": [note("resources/list_changed")]},
        {"CAP-18": "undeclared|ungated"},
    ),
]

CODES: list[Case] = [
    (
        "prompts-invalid-request",
        NOV25,
        {"tools": {}},
        {"prompts/list": {"error": [-32600, "no"]}, "prompts/get": {"error": [-32600, "no"]}},
        {"CAP-14": "wrong-code"},
    ),
    (
        "all-unknown-params",
        NOV25,
        {"tools": {}},
        {"unknown": {"error": [-32602, "Invalid request parameters"]}},
        {"CAP-14": "wrong-code", "CAP-16": "wrong-code", "findings": ["protocol.unknown-method"]},
    ),
    (
        "resources-http",
        JUN25,
        {"tools": {}},
        {
            "resources/list": {"http": 400, "body": "Bad Request"},
            "resources/templates/list": {"http": 400, "body": "Bad Request"},
        },
        {"CAP-16": "wrong-code"},
    ),
    (
        "completion-server-error",
        NOV25,
        {"prompts": {}},
        {"completion/complete": {"error": [-32000, "no"]}},
        {"CAP-13": "wrong-code"},
    ),
    (
        "subscribe-params",
        NOV25,
        {"resources": {"subscribe": False}},
        {"resources/subscribe": {"error": [-32602, "no"]}, "resources/unsubscribe": {"error": [-32602, "no"]}},
        {"CAP-17": "wrong-code"},
    ),
    (
        "tasks-invalid-request",
        NOV25,
        {"tools": {}},
        {"tasks/list": {"error": [-32600, "no"]}},
        {"CAP-21": "wrong-code"},
    ),
    (
        "tools-code-modern",
        MODERN,
        {"prompts": {}},
        {"tools/list": {"error": [-32603, "no"]}, "tools/call": {"error": [-32603, "no"]}},
        {"CAP-19": "wrong-code"},
    ),
    ("unknown-served", MAR25, {"tools": {}}, {"unknown": {"result": {}}}, {"findings": ["protocol.unknown-method"]}),
]

MALFORMED: list[Case] = [
    ("tools-null", NOV25, {"tools": None}, {}, {"CAP-19": "malformed"}),
    ("tools-true", NOV24, {"tools": True}, {}, {"CAP-19": "malformed"}),
    ("prompts-false", JUN25, {"prompts": False, "tools": {}}, {}, {"CAP-14": "malformed"}),
    ("resources-list", MAR25, {"resources": [], "tools": {}}, {}, {"CAP-16": "malformed"}),
    ("logging-true", NOV25, {"logging": True, "tools": {}}, {}, {"CAP-12": "malformed"}),
    ("completions-text-modern", MODERN, {"completions": "on", "tools": {}}, {}, {"CAP-13": "malformed"}),
    ("subscribe-text", NOV25, {"resources": {"subscribe": "yes"}}, {}, {"CAP-17": "malformed"}),
    ("list-changed-number", NOV24, {"tools": {"listChanged": 1}}, {}, {"CAP-20": "malformed"}),
    ("list-changed-null-modern", MODERN, {"prompts": {"listChanged": None}}, {}, {"CAP-15": "malformed"}),
    ("list-changed-object", NOV25, {"resources": {"listChanged": {}}}, {}, {"CAP-18": "malformed"}),
    ("tasks-list-true", NOV25, {"tasks": {"list": True}}, {}, {"CAP-22": "malformed"}),
    ("tasks-cancel-false", NOV25, {"tasks": {"cancel": False}}, {}, {"CAP-23": "malformed"}),
    ("tasks-null", NOV25, {"tasks": None, "tools": {}}, {}, {"CAP-21": "malformed"}),
    ("experimental-list", NOV25, {"experimental": ["x"], "tools": {}}, {}, {"CAP-01-server": "malformed"}),
    (
        "experimental-null-modern",
        MODERN,
        {"experimental": {"x": None}, "tools": {}},
        {},
        {"CAP-01-server": "malformed"},
    ),
    ("extensions-true", MODERN, {"extensions": {"org.example/x": True}, "tools": {}}, {}, {"CAP-25": "malformed"}),
    ("extension-tasks-list", MODERN, {"extensions": {TASKS_KEY: []}, "tools": {}}, {}, {"CAP-26-server": "malformed"}),
]

LEAKED: list[Case] = [
    ("completions-2024", NOV24, {"completions": {}, "prompts": {}}, {}, {"CAP-13": "leaked"}),
    ("tasks-early", JUN25, {"tasks": {"list": {}}, "tools": {}}, {}, {"CAP-21": "leaked"}),
    ("tasks-late", MODERN, {"tasks": {}, "tools": {}}, {}, {"CAP-21": "leaked"}),
    ("extensions-early", NOV25, {"extensions": {"org.example/x": {}}, "tools": {}}, {}, {"CAP-25": "leaked"}),
    ("elicitation-by-server", JUN25, {"elicitation": {}, "tools": {}}, {}, {"CAP-07": "leaked"}),
    ("roots-by-server", NOV25, {"roots": {"listChanged": True}, "tools": {}}, {}, {"CAP-02": "leaked"}),
    ("sampling-by-server-modern", MODERN, {"sampling": {}, "tools": {}}, {}, {"CAP-04": "leaked"}),
    ("prompts-subscribe", NOV25, {"prompts": {"subscribe": True}}, {}, {"CAP-14": "leaked"}),
    ("resources-templates", MAR25, {"resources": {"templates": True}}, {}, {"CAP-16": "leaked"}),
    ("list-changed-misspelt", NOV25, {"tools": {"list_changed": True}}, {}, {"CAP-19": "leaked", "CAP-20": "absent"}),
    ("tools-call", JUN25, {"tools": {"call": True}}, {}, {"CAP-19": "leaked"}),
    ("list-changed-dashed", NOV24, {"resources": {"list-changed": True}}, {}, {"CAP-16": "leaked"}),
    ("tasks-update", NOV25, {"tasks": {"list": {}, "update": {}}}, {}, {"CAP-21": "leaked", "CAP-22": "kept"}),
    ("extension-without-prefix", MODERN, {"tools": {}, "extensions": {"x": {}}}, {}, {"CAP-25": "malformed"}),
    ("prompts-list-modern", MODERN, {"prompts": {"list": True}}, {}, {"CAP-14": "leaked"}),
]

CHANGES: list[Case] = [
    (
        "prompts-grow",
        NOV25,
        {"prompts": {"listChanged": True}, "tools": {}},
        {"grow_on_call": "prompts"},
        {"CAP-15": "broken"},
    ),
    (
        "resources-grow",
        NOV24,
        {"resources": {"listChanged": True}, "tools": {}},
        {"grow_on_call": "resources"},
        {"CAP-18": "broken"},
    ),
    ("tools-grow-modern", MODERN, {"tools": {"listChanged": True}}, {"grow_on_call": "tools"}, {"CAP-20": "broken"}),
    (
        "tools-grow-announced",
        JUN25,
        {"tools": {"listChanged": True}},
        {"grow_on_call": "tools", "announce": True},
        {"CAP-20": "kept"},
    ),
    (
        "prompts-grow-announced",
        MODERN,
        {"prompts": {"listChanged": True}, "tools": {}},
        {"grow_on_call": "prompts", "announce": True},
        {"CAP-15": "kept"},
    ),
    (
        "tools-grow-unpromised",
        NOV25,
        {"tools": {"listChanged": False}},
        {"grow_on_call": "tools"},
        {"CAP-20": "absent|kept"},
    ),
    (
        "listen-missing",
        MODERN,
        {"tools": {"listChanged": True}},
        {"subscriptions/listen": NOT_FOUND},
        {"CAP-20": "broken"},
    ),
    (
        "listen-hangs",
        MODERN,
        {"prompts": {"listChanged": True}},
        {"subscriptions/listen": "drop"},
        {"CAP-15": "broken"},
    ),
    (
        "ack-lacks-prompts",
        MODERN,
        {"prompts": {"listChanged": True}, "tools": {"listChanged": True}},
        {"listen_ack": {"toolsListChanged": True}},
        {"CAP-15": "broken", "CAP-20": "kept|not-observable"},
    ),
    ("ack-lacks-subscriptions", MODERN, {"resources": {"subscribe": True}}, {"listen_ack": {}}, {"CAP-17": "broken"}),
    (
        "ack-too-much",
        MODERN,
        {"resources": {}, "tools": {"listChanged": True}},
        {"listen_ack": {"toolsListChanged": True, "resourcesListChanged": True}},
        {"CAP-18": "undeclared"},
    ),
]

TASKS: list[Case] = [
    (
        "tasks-list-missing",
        NOV25,
        {"tasks": {"list": {}, "cancel": {}}},
        {"tasks/list": NOT_FOUND},
        {"CAP-22": "broken", "CAP-23": "kept"},
    ),
    (
        "tasks-cancel-missing",
        NOV25,
        {"tasks": {"list": {}, "cancel": {}}},
        {"tasks/cancel": NOT_FOUND},
        {"CAP-22": "kept", "CAP-23": "broken"},
    ),
    (
        "tasks-no-tool",
        NOV25,
        {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
        {},
        {"CAP-24": "broken|not-observable"},
    ),
    (
        "tasks-get-missing-modern",
        MODERN,
        {"tools": {}, "extensions": {TASKS_KEY: {}}},
        {"tasks/get": NOT_FOUND},
        {"CAP-26-server": "broken"},
    ),
    (
        "tasks-extension",
        MODERN,
        {"tools": {}, "extensions": {TASKS_KEY: {}}},
        {},
        {"CAP-26-server": "kept|not-observable"},
    ),
]

LOGS: list[Case] = [
    ("logs", NOV25, {"logging": {}, "tools": {}}, {"logs": True}, {"CAP-12": "kept"}),
    ("logs-modern", MODERN, {"logging": {}, "tools": {}}, {"logs": True}, {"CAP-12": "kept"}),
    ("logs-never", JUN25, {"logging": {}, "tools": {}}, {}, {"CAP-12": "not-observable"}),
    (
        "any-level",
        NOV25,
        {"logging": {}, "tools": {}},
        {"logging/setLevel": {"result": {}}},
        {"findings": ["logging.bad-level-accepted"]},
    ),
]

GATES: list[Case] = [
    ("roots-asked", NOV24, {"tools": {}}, {"ask_on_call": [{"method": "roots/list"}]}, {"CAP-02": "ungated"}),
    ("sampling-asked", JUN25, {"tools": {}}, {"ask_on_call": [sampling()]}, {"CAP-04": "ungated"}),
    ("elicitation-asked", NOV25, {"tools": {}}, {"ask_on_call": [elicitation()]}, {"CAP-07": "ungated"}),
    ("sampling-asked-modern", MODERN, {"tools": {}}, {"ask_on_call": [sampling()]}, {"CAP-04": "ungated"}),
    (
        "elicitation-asked-modern",
        MODERN,
        {"tools": {}},
        {"ask_on_call": [elicitation(mode="form")]},
        {"CAP-07": "ungated"},
    ),
    (
        "refusal-says-not-which",
        MODERN,
        {"tools": {}},
        {"tools/call": {"error": [-32021, "Missing capability"]}},
        {"findings": ["modern.required-capabilities"]},
    ),
]

LISTS: list[Case] = [
    (
        "shared-cache-varies",
        MODERN,
        {"tools": {}},
        {"hide_without": "sampling", "cache": "public"},
        {"findings": ["cache.public-varies"]},
    ),
    ("private-cache-varies", MODERN, {"tools": {}}, {"hide_without": "sampling"}, {"CAP-19": "kept", "clean": True}),
    ("list-varies-legacy", NOV25, {"tools": {}}, {"hide_without": "sampling"}, {"CAP-19": "kept", "clean": True}),
    ("connections-differ", MODERN, {"tools": {}}, {"by_process": True}, {"findings": ["cache.varies-by-connection"]}),
]

STARTS: list[Case] = [
    ("exits", NOV25, {}, {"exit": "no module named nothing"}, {"outcome": "did-not-start", "reason": "nothing"}),
    ("exits-modern", MODERN, {}, {"exit": "needs a token"}, {"outcome": "did-not-start", "reason": "token"}),
    (
        "says-nothing",
        JUN25,
        {},
        {"initialize": "drop", "server/discover": "drop"},
        {"outcome": "did-not-start|unreachable"},
    ),
]

DEEP = '{"jsonrpc":"2.0","id":$id,"result":{"tools":' + "[" * 20_000 + "]" * 20_000 + "}}"
HUGE = '{"jsonrpc":"2.0","id":$id,"result":{"completion":{"values":["a"],"total":1' + "0" * 400 + "}}}"
BOTH = {"jsonrpc": "2.0", "id": "$id", "result": {"tools": []}, "error": {"code": -32601, "message": "no"}}
TEXT = {"jsonrpc": "2.0", "id": "$id", "error": "no such method"}
CODE = {"jsonrpc": "2.0", "id": "$id", "error": {"code": "-32601", "message": "no"}}

HOSTILE: list[Case] = [
    (
        "cursor-repeats",
        NOV25,
        {"prompts": {}},
        {"prompts/list": {"result": {"prompts": [{"name": "p"}], "nextCursor": "a"}}},
        {"CAP-14": "kept|partial", "findings": ["lists.cursor-repeats"]},
    ),
    ("result-and-error", JUN25, {"tools": {}}, {"tools/list": {"raw": BOTH}}, {"CAP-19": "broken"}),
    ("error-is-text", NOV25, {"tools": {}}, {"prompts/list": {"raw": TEXT}}, {"CAP-14": "wrong-code"}),
    ("code-is-text", NOV25, {"tools": {}}, {"prompts/list": {"raw": CODE}}, {"CAP-14": "wrong-code"}),
    ("deep", NOV25, {"tools": {}}, {"tools/list": {"text": DEEP}}, {"CAP-19": "broken"}),
    ("huge", NOV25, {"completions": {}, "prompts": {}}, {"completion/complete": {"text": HUGE}}, {"CAP-13": "kept"}),
    (
        "no-json",
        NOV24,
        {"tools": {}},
        {"tools/list": {"text": "Traceback (most recent call last):"}},
        {"CAP-19": "broken", "findings": ["protocol.junk"]},
    ),
    (
        "capabilities-list",
        NOV25,
        {},
        {"initialize": {"result": {"protocolVersion": NOV25, "capabilities": [], "serverInfo": {"name": "x"}}}},
        {"findings": ["declaration.malformed|negotiation.malformed"]},
    ),
    (
        "capabilities-null",
        MODERN,
        {},
        {"server/discover": {"result": {**COMPLETE, "supportedVersions": [MODERN], "capabilities": None}}},
        {"era": "modern", "findings": ["declaration.malformed|era.discover-malformed"]},
    ),
    (
        "other-updated",
        NOV25,
        {"resources": {"subscribe": True}, "tools": {}},
        {"emit_on_call": [note("resources/updated", uri="probe://other")]},
        {"CAP-17": "broken"},
    ),
    (
        "level-unknown",
        NOV25,
        {"logging": {}, "tools": {}},
        {"emit_on_call": [note("message", level="loud", data="x")]},
        {"CAP-12": "partial|broken"},
    ),
    (
        "task-status-sent",
        NOV25,
        {"tools": {}},
        {"emit_on_call": [note("tasks/status", taskId="x", status="working")]},
        {"CAP-21": "undeclared"},
    ),
]

ERAS: list[Case] = [
    (
        "always-2024",
        NOV25,
        {"tools": {}, "completions": {}, "prompts": {}},
        {"version": NOV24},
        {"negotiated": NOV24, "CAP-13": "leaked"},
    ),
    (
        "any-version-modern",
        MODERN,
        {"tools": {}},
        {"no_meta_check": True},
        {"findings": ["negotiation.unknown-version"]},
    ),
    ("any-version", NOV25, {"tools": {}}, {"version": "echo"}, {"findings": ["negotiation.unknown-version"]}),
    (
        "initialize-bare",
        NOV25,
        {},
        {"initialize": {"result": {"protocolVersion": NOV25}}},
        {"findings": ["negotiation.malformed"]},
    ),
    ("discover-list", NOV25, {"tools": {}}, {"server/discover": {"result": []}}, {"era": "legacy", "CAP-19": "kept"}),
    (
        "discover-text",
        NOV25,
        {"tools": {}},
        {"server/discover": {"result": "yes"}},
        {"era": "legacy", "CAP-19": "kept"},
    ),
    (
        "discover-null-id",
        JUN25,
        {"tools": {}},
        {"server/discover": {"raw": {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}}},
        {"era": "legacy", "CAP-19": "kept"},
    ),
    (
        "discover-invalid",
        MAR25,
        {"tools": {}},
        {"server/discover": {"error": [-32600, "no"]}},
        {"era": "legacy", "CAP-19": "kept"},
    ),
    (
        "discover-server-error",
        NOV24,
        {"tools": {}},
        {"server/discover": {"error": [-32000, "no"]}},
        {"era": "legacy", "CAP-19": "kept"},
    ),
    (
        "discover-empty",
        MODERN,
        {},
        {"server/discover": {"result": {}}},
        {"era": "modern", "findings": ["era.discover-malformed"]},
    ),
    (
        "discover-wrong-types",
        MODERN,
        {},
        {"server/discover": {"result": {**COMPLETE, "supportedVersions": MODERN, "capabilities": {}}}},
        {"era": "modern", "findings": ["era.discover-malformed"]},
    ),
    (
        "eras-differ",
        NOV25,
        {"tools": {}, "logging": {}},
        {"modern_declare": {"tools": {}}},
        {"findings": ["declaration.eras-differ"]},
    ),
]

PROTOCOL: list[Case] = [
    ("ping-dropped", NOV25, {"tools": {}}, {"ping": "drop"}, {"findings": ["protocol.ping|protocol.hangs"]}),
    ("ping-missing", NOV24, {"tools": {}}, {"ping": NOT_FOUND}, {"findings": ["protocol.ping"]}),
    (
        "answers-notifications",
        JUN25,
        {"tools": {}},
        {"answer_notifications": True},
        {"findings": ["protocol.notification-answered"]},
    ),
    (
        "unknown-params",
        NOV25,
        {"tools": {}, "prompts": {}, "resources": {}},
        {"unknown": {"error": [-32602, "no"]}},
        {"findings": ["protocol.unknown-method"]},
    ),
    ("junk", MAR25, {"tools": {}}, {"junk": "INFO: working"}, {"findings": ["protocol.junk"], "CAP-19": "kept"}),
    (
        "dies",
        NOV25,
        {"tools": {}, "prompts": {}},
        {"prompts/list": "die"},
        {"findings": ["process.died"], "CAP-14": "broken"},
    ),
    ("meta-not-required", MODERN, {"tools": {}}, {"no_meta_check": True}, {"findings": ["modern.meta-not-required"]}),
]

EVERYTHING = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
}
KEPT = {
    "CAP-14": "kept",
    "CAP-16": "kept",
    "CAP-17": "kept|not-observable",
    "CAP-19": "kept",
    "CAP-20": "kept",
    "clean": True,
}
GROWING = {"logs": True, "grow_on_call": "tools", "announce": True}
TASKS_2025 = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}

HONEST: list[Case] = [
    ("honest-2024", NOV24, EVERYTHING, GROWING, KEPT),
    ("honest-march", MAR25, {**EVERYTHING, "completions": {}}, GROWING, {**KEPT, "CAP-13": "kept"}),
    ("honest-june", JUN25, {**EVERYTHING, "completions": {}}, GROWING, {**KEPT, "CAP-13": "kept"}),
    (
        "honest-november",
        NOV25,
        {**EVERYTHING, "completions": {}, "tasks": {"list": {}, "cancel": {}}},
        GROWING,
        {**KEPT, "CAP-13": "kept", "CAP-22": "kept", "CAP-23": "kept"},
    ),
    ("honest-modern", MODERN, {**EVERYTHING, "completions": {}}, GROWING, {**KEPT, "CAP-13": "kept"}),
    ("honest-nothing", NOV25, {}, {}, {"CAP-14": "absent", "CAP-16": "absent", "CAP-19": "absent", "clean": True}),
    (
        "honest-nothing-modern",
        MODERN,
        {},
        {},
        {"CAP-14": "absent", "CAP-16": "absent", "CAP-19": "absent", "clean": True},
    ),
    (
        "honest-experimental",
        JUN25,
        {"tools": {}, "experimental": {"org.example/x": {}}},
        {},
        {"CAP-01-server": "kept|not-observable", "clean": True},
    ),
]

CASES: list[dict[str, Any]] = [
    {"id": name, "rev": revision, "declare": declare, "behave": behave, "expect": expect}
    for group in (
        REFUSED,
        WRONG_SHAPE,
        EMPTY,
        SERVED,
        SENT,
        CODES,
        MALFORMED,
        LEAKED,
        CHANGES,
        TASKS,
        LOGS,
        GATES,
        LISTS,
        HOSTILE,
        STARTS,
        ERAS,
        PROTOCOL,
        HONEST,
    )
    for name, revision, declare, behave, expect in group
]
