"""CAP-13 `completions`: `completion/complete` answers with values. 2024-11-05 has the method and no capability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from troth.audit.context import INVALID_PARAMS, mapping, told
from troth.audit.model import Verdict
from troth.audit.probes.families import broken, refused_rightly, undeclared
from troth.audit.shapes import problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.audit.context import Context
    from troth.audit.wire.types import Reply

ROW = "CAP-13"
NOWHERE = {
    "ref": {"type": "ref/prompt", "name": "troth_absent_prompt"},
    "argument": {"name": "x", "value": ""},
}
REFERENCES = 6
"""So many references are tried until one is completed."""


async def probe(ctx: Context) -> None:
    """Asks for completions of arguments that the server itself names."""
    if not ctx.defines(ROW):
        return
    replies = [await ctx.call("completion/complete", params) for params in [*_references(ctx)][:REFERENCES]]
    given = bool(replies)
    if not replies:
        replies = [await ctx.call("completion/complete", NOWHERE)]
    first = next((reply for reply in replies if reply.ok), replies[0])
    if not ctx.declares(ROW):
        undeclared(ctx, ROW, "completion/complete", first)
        return
    _judge(ctx, first, given=given)


def _judge(ctx: Context, reply: Reply, *, given: bool) -> None:
    wrong = problem("completion/complete", reply.result) if reply.ok else ""
    if reply.ok and not wrong:
        values = cast("list[str]", mapping(mapping(reply.result)["completion"])["values"])
        ctx.judge(ROW, Verdict.KEPT, f"`completion/complete` answers with {len(values)} values.", reply)
    elif wrong or refused_rightly(reply) or reply.failure is not None or (given and reply.code != INVALID_PARAMS):
        broken(ctx, ROW, "completion/complete", reply, wrong)
    else:
        ctx.judge(
            ROW,
            Verdict.NOT_OBSERVABLE,
            f"No argument to complete is listed, or none completes: {told(reply)}.",
            reply,
            hint="List a prompt with an argument, or a resource template, that completes.",
        )


def _references(ctx: Context) -> Iterator[dict[str, Any]]:
    for prompt in ctx.lists["prompts/list"].items:
        listed = prompt.get("arguments")
        for argument in cast("list[object]", listed) if isinstance(listed, list) else []:
            name = mapping(argument).get("name")
            if isinstance(name, str):
                yield {
                    "ref": {"type": "ref/prompt", "name": prompt["name"]},
                    "argument": {"name": name, "value": ""},
                }
    for template in ctx.lists["resources/templates/list"].items:
        for name in variables(template["uriTemplate"]):
            yield {
                "ref": {"type": "ref/resource", "uri": template["uriTemplate"]},
                "argument": {"name": name, "value": ""},
            }


def variables(template: str) -> list[str]:
    """Names of the variables of a URI template (RFC 6570), in their order."""
    names: list[str] = []
    for part in template.split("{")[1:]:
        inside, closed, _ = part.partition("}")
        if closed:
            names += [name.rstrip("*").partition(":")[0] for name in inside.lstrip("+#./;?&").split(",") if name]
    return names
