"""Faults of tools, prompts and resources: declared and not served, served and not declared, declared wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.register import Era
from troth.testing.faults.hooks import ALL, edit_result, fault, hide, instead, put, refuse, rewrite
from troth.testing.model import Twist

if TYPE_CHECKING:
    from troth.testing.model import Call, Fault, JsonObject
    from troth.testing.script import Script


class _Family(NamedTuple):
    name: str
    row: str
    lists: tuple[str, ...]
    use: str


_FAMILIES = (
    _Family("tools", "CAP-19", ("tools/list",), "tools/call"),
    _Family("prompts", "CAP-14", ("prompts/list",), "prompts/get"),
    _Family("resources", "CAP-16", ("resources/list", "resources/templates/list"), "resources/read"),
)
_FLAGS = {"tools": ("CAP-20",), "prompts": ("CAP-15",), "resources": ("CAP-17", "CAP-18")}


def _faults(family: _Family) -> tuple[Fault, ...]:
    name, row, lists, use = family
    everything = (*lists, use)
    listed: JsonObject = {"resources/list": {"resources": []}, "resources/templates/list": {"resourceTemplates": []}}

    def empty(_script: Script, call: Call) -> JsonObject | None:
        if call.method not in lists:
            return None
        return {**listed.get(call.method, {name: []}), "ttlMs": 0, "cacheScope": "public"}

    return (
        fault(
            f"{name}-refused",
            row,
            ALL,
            f"Declares {name} and refuses every {name} method with -32601.",
            Twist(instead=refuse(*everything)),
            verdict="broken",
        ),
        fault(
            f"{name}-wrong-shape",
            row,
            ALL,
            f"Answers {lists[0]} with an object that has no list.",
            Twist(instead=instead(lists[0], answer={})),
            verdict="broken",
        ),
        fault(
            f"{use.replace('/', '-')}-refused",
            row,
            ALL,
            f"Lists its {name} and refuses {use} with -32601.",
            Twist(instead=refuse(use)),
            verdict="partial",
        ),
        fault(
            f"{name}-undeclared-but-served",
            row,
            ALL,
            f"Serves {name} and does not declare them.",
            Twist(declare=hide(name)),
            also=_FLAGS[name],
            verdict="undeclared",
        ),
        fault(
            f"{name}-unknown-subkey",
            row,
            ALL,
            f"Declares a member of {name} that no revision defines.",
            Twist(declare=put(name, "list", value=True)),
            verdict="leaked",
        ),
        fault(
            f"{name}-not-an-object",
            row,
            ALL,
            f"Declares {name}: true.",
            Twist(declare=put(name, value=True)),
            also=_FLAGS[name],
            verdict="malformed",
        ),
        fault(
            f"{name}-empty",
            row,
            ALL,
            f"Declares {name} and has none.",
            Twist(instead=empty),
            verdict="empty",
        ),
        fault(
            f"{name}-wrong-code",
            row,
            ALL,
            f"Does not declare {name} and refuses them with -32603.",
            Twist(declare=hide(name), instead=refuse(*everything, code=-32603)),
            also=_FLAGS[name],
            verdict="wrong-code",
        ),
    )


def _other_code(_script: Script, call: Call | None, message: JsonObject) -> JsonObject:
    error = message.get("error")
    if call and call.method == "resources/read" and error:
        error["code"] = -32602 if call.era is Era.LEGACY else -32002
    return message


def _repeat(_call: Call, result: JsonObject) -> None:
    result["nextCursor"] = "after-0"


FAULTS: tuple[Fault, ...] = (
    *(made for family in _FAMILIES for made in _faults(family)),
    fault(
        "resources-templates-refused",
        "CAP-16",
        ALL,
        "Declares resources and refuses resources/templates/list with -32601.",
        Twist(instead=refuse("resources/templates/list")),
        verdict="partial",
    ),
    fault(
        "resources-absent-wrong-code",
        "CAP-16",
        ALL,
        "Refuses an unknown resource with the code of the other era.",
        Twist(after=rewrite(_other_code)),
        finding="resources.not-found-code",
    ),
    fault(
        "tools-unknown-name-accepted",
        "CAP-19",
        ALL,
        "Answers a call of a tool that it does not list as if it had run.",
        Twist(
            instead=lambda script, call: (
                {"content": []}
                if call.method == "tools/call"
                and all(tool["name"] != call.params.get("name") for tool in script.catalogue.tools)
                else None
            )
        ),
        finding="tools.unknown-accepted",
    ),
    fault(
        "pages-never-end",
        "CAP-19",
        ALL,
        "Gives every page of every list the same cursor for the next one.",
        Twist(after=edit_result(_repeat, "tools/list", "prompts/list", "resources/list", "resources/templates/list")),
        also=("CAP-14", "CAP-16"),
        finding="lists.cursor-repeats",
    ),
    fault(
        "cursor-refused",
        "CAP-14",
        ALL,
        "Refuses the cursor that it gave out itself.",
        Twist(
            instead=lambda script, call: (
                refuse("prompts/list", code=-32602)(script, call) if "cursor" in call.params else None
            )
        ),
        verdict="partial",
    ),
)
