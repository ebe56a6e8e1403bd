"""CAP-25 `extensions` and the extensions without a number: what is declared by key, and whether it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.audit.context import mapping, told
from troth.audit.model import Verdict
from troth.audit.probes.families import broken, refused_rightly
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from troth.audit.context import Context

ROW, UI, SKILLS = "CAP-25", "XE-ui-server", "XE-skills-server"
JUDGED = ("CAP-26-server", UI, SKILLS)
"""Extensions that a probe can judge."""


async def probe(ctx: Context) -> None:
    """Judges the map and the UI extension; the rest is said to be not observable."""
    if not ctx.defines(ROW):
        return
    keys = mapping(ctx.declared.effective.get("extensions"))
    if not ctx.declares(ROW):
        ctx.judge(ROW, Verdict.ABSENT, "Not declared.")
    elif not keys:
        ctx.judge(ROW, Verdict.EMPTY, "Declared, with no extension in it.")
    else:
        known = {register().by_id[row].key[-1] for row in JUDGED}
        others = sorted(set(keys) - known)
        if others:
            few = ", ".join(others[:5])
            ctx.judge(ROW, Verdict.NOT_OBSERVABLE, f"Well-formed; what {few} promises is not known to the audit.")
        else:
            ctx.judge(ROW, Verdict.KEPT, f"Well-formed: {', '.join(sorted(keys))}.")
    _ui(ctx)
    await _skills(ctx)
    for row in register().at(Side.SERVER, ctx.revision):
        if row.extension is not None and row.id not in JUDGED:
            declared = ctx.declares(row.id)
            verdict = Verdict.NOT_OBSERVABLE if declared else Verdict.ABSENT
            ctx.judge(row.id, verdict, "Declared; nothing here can test it." if declared else "Not declared.")


async def _skills(ctx: Context) -> None:
    if not ctx.declares(SKILLS):
        ctx.judge(SKILLS, Verdict.ABSENT, "Not declared.")
        return
    listed = await ctx.call("skills/list")
    if refused_rightly(listed) or listed.failure is not None:
        broken(ctx, SKILLS, "skills/list", listed)
    else:
        ctx.judge(SKILLS, Verdict.KEPT, f"`skills/list` gets {told(listed)}.", listed)


def _ui(ctx: Context) -> None:
    shown = next((tool for tool in ctx.lists["tools/list"].items if _has_ui(tool)), None)
    pages = [uri for uri in ctx.lists["resources/list"].names("uri") if uri.startswith("ui://")]
    proof = ctx.lists["resources/list"].reply if pages else ctx.lists["tools/list"].reply
    found = bool(pages) or shown is not None
    if ctx.declares(UI) and not found:
        ctx.judge(UI, Verdict.EMPTY, "Declared; no tool points at a UI and no `ui://` resource is listed.", proof)
    elif ctx.declares(UI):
        ctx.judge(UI, Verdict.KEPT, "Declared, and a UI is offered.", proof)
    elif found:
        ctx.judge(UI, Verdict.UNDECLARED, "A UI is offered, and the extension is not declared.", proof)
    else:
        ctx.judge(UI, Verdict.ABSENT, "Not declared, and no UI is offered.")


def _has_ui(tool: Mapping[str, Any]) -> bool:
    meta = mapping(tool.get("_meta"))
    return "ui" in meta or "ui/resourceUri" in meta
