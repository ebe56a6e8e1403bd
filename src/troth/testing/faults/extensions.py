"""Faults of ``extensions`` and of the extensions that can be seen on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.register import Era
from troth.testing.content import PANEL, TASKS_EXTENSION, UI_EXTENSION
from troth.testing.faults.hooks import LEGACY, MODERN, edit_result, fault, hide, instead, lax, put, refuse
from troth.testing.model import META, Refusal, Twist

if TYPE_CHECKING:
    from troth.testing.model import Answer, Call, Fault, JsonObject
    from troth.testing.script import Script

OAUTH = f"{META}oauth-client-credentials"
SKILLS = f"{META}skills"
_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


def _ungated(_script: Script, call: Call) -> Answer | None:
    undeclared = TASKS_EXTENSION not in call.capabilities.get("extensions", {})
    return (
        Refusal(-32602, "Unknown task") if call.era is Era.MODERN and call.method in _METHODS and undeclared else None
    )


def _inline(_script: Script, call: Call) -> Answer | None:
    slow = call.era is Era.MODERN and call.method == "tools/call" and call.params.get("name") == "slow"
    return {"content": [{"type": "text", "text": "The work is done."}]} if slow else None


def _panel(_call: Call, result: JsonObject) -> None:
    if "nextCursor" not in result:
        result["resources"].append(dict(PANEL))


def _read_panel(_script: Script, call: Call) -> Answer | None:
    if call.method != "resources/read" or call.params.get("uri") != PANEL["uri"]:
        return None
    contents = {"uri": PANEL["uri"], "mimeType": PANEL["mimeType"], "text": "<p>A panel</p>"}
    return {"contents": [contents], "ttlMs": 0, "cacheScope": "public"}


FAULTS: tuple[Fault, ...] = (
    fault(
        "extensions-in-initialize",
        "CAP-25",
        LEGACY,
        "Declares extensions in the result of initialize.",
        Twist(declare=put("extensions", value={UI_EXTENSION: {}})),
        verdict="leaked",
    ),
    fault(
        "extensions-bad-key",
        "CAP-25",
        MODERN,
        "Declares an extension under a key without the mandatory prefix.",
        Twist(declare=put("extensions", "tasks", value={})),
        verdict="malformed",
    ),
    fault(
        "extensions-value-not-an-object",
        "CAP-25",
        MODERN,
        "Declares true under the key of an extension.",
        Twist(declare=put("extensions", "com.example/thing", value=True)),
        verdict="malformed",
    ),
    fault(
        "extensions-not-a-map",
        "CAP-25",
        MODERN,
        "Declares extensions: true.",
        Twist(declare=put("extensions", value=True)),
        also=("CAP-26-server",),
        verdict="malformed",
    ),
    fault(
        "exttasks-refused",
        "CAP-26-server",
        MODERN,
        "Declares the tasks extension and refuses its methods with -32601.",
        Twist(instead=refuse(*_METHODS)),
        verdict="broken",
    ),
    fault(
        "exttasks-without-client-key",
        "CAP-26-server",
        MODERN,
        "Answers a request with a task that did not declare the extension.",
        lax("tasks-opt-in"),
        verdict="ungated",
        provoke="slow",
    ),
    fault(
        "exttasks-missing-32021",
        "CAP-26-server",
        MODERN,
        "Refuses tasks/get of a request that did not declare the extension with -32602, not with -32021.",
        Twist(instead=_ungated),
        verdict="wrong-code",
    ),
    fault(
        "exttasks-undeclared-but-served",
        "CAP-26-server",
        MODERN,
        "Serves the tasks extension and does not declare it.",
        Twist(declare=hide("extensions", TASKS_EXTENSION)),
        verdict="undeclared",
    ),
    fault(
        "exttasks-not-an-object",
        "CAP-26-server",
        MODERN,
        "Declares the tasks extension as true.",
        Twist(declare=put("extensions", TASKS_EXTENSION, value=True)),
        also=("CAP-25",),
        verdict="malformed",
    ),
    fault(
        "exttasks-inline",
        "CAP-26-server",
        MODERN,
        "Never answers with a task, though the request declared the extension.",
        Twist(instead=_inline),
        verdict="not-observable",
        provoke="slow",
    ),
    fault(
        "exttasks-core-methods-served",
        "CAP-22",
        MODERN,
        "Answers tasks/list in a revision that removed it.",
        Twist(instead=instead("tasks/list", answer={"tasks": []})),
        finding="method.removed-served",
    ),
    fault(
        "exttasks-core-beside",
        "CAP-21",
        MODERN,
        "Declares core tasks beside the tasks extension.",
        Twist(declare=put("tasks", value={"list": {}, "cancel": {}})),
        verdict="leaked",
    ),
    fault(
        "ui-declared-with-none",
        "XE-ui-server",
        MODERN,
        "Declares the UI extension and has no UI.",
        Twist(declare=put("extensions", UI_EXTENSION, value={})),
        verdict="empty",
    ),
    fault(
        "ui-undeclared",
        "XE-ui-server",
        MODERN,
        "Lists a ui:// resource and does not declare the UI extension.",
        Twist(instead=_read_panel, after=edit_result(_panel, "resources/list")),
        verdict="undeclared",
    ),
    fault(
        "skills-declared-not-served",
        "XE-skills-server",
        MODERN,
        "Declares the skills extension and refuses its methods with -32601.",
        Twist(declare=put("extensions", SKILLS, value={})),
        verdict="broken",
    ),
    fault(
        "oauth-declared",
        "XE-oauth-cc-server",
        MODERN,
        "Declares the client-credentials extension, of which nothing shows on this wire.",
        Twist(declare=put("extensions", OAUTH, value={})),
        verdict="not-observable",
    ),
)
