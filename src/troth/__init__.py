"""Troth: what MCP hosts and servers promise each other, and whether they keep it.

The names below are imported on first use, so that ``import troth`` costs nothing. ``troth.capabilities`` and
``troth.register`` are packages: the short forms are ``troth.capabilities.capabilities``, the register is
``troth.register.register``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.capabilities import (
        Built,
        ClientCapabilities,
        ClientFacts,
        Comparison,
        Facts,
        Problem,
        ProblemKind,
        ServerCapabilities,
        build,
        build_client,
        compare,
        read_client,
        read_server,
    )
    from troth.gating import (
        ELICITATION,
        ELICITATION_FORM,
        ELICITATION_URL,
        ROOTS,
        ROOTS_LIST_CHANGED,
        SAMPLING,
        SAMPLING_CONTEXT,
        SAMPLING_TOOLS,
        TASKS,
        TASKS_CANCEL,
        TASKS_ELICITATION,
        TASKS_LIST,
        TASKS_SAMPLING,
        CapabilityNotMet,
        Need,
        Requirement,
        Visible,
        any_of,
        experimental,
        extension,
        missing,
        requires,
        visible,
    )
    from troth.plugins.fastmcp_source import Troth
    from troth.plugins.honest import Current, current
    from troth.plugins.install import (
        install,
        notify_prompts_changed,
        notify_resource_updated,
        notify_resources_changed,
        notify_tools_changed,
    )
    from troth.plugins.tasking import task
    from troth.register.model import Era, Side

_HOMES = {
    "ELICITATION": "troth.gating",
    "ELICITATION_FORM": "troth.gating",
    "ELICITATION_URL": "troth.gating",
    "ROOTS": "troth.gating",
    "ROOTS_LIST_CHANGED": "troth.gating",
    "SAMPLING": "troth.gating",
    "SAMPLING_CONTEXT": "troth.gating",
    "SAMPLING_TOOLS": "troth.gating",
    "TASKS": "troth.gating",
    "TASKS_CANCEL": "troth.gating",
    "TASKS_ELICITATION": "troth.gating",
    "TASKS_LIST": "troth.gating",
    "TASKS_SAMPLING": "troth.gating",
    "Built": "troth.capabilities",
    "CapabilityNotMet": "troth.gating",
    "ClientCapabilities": "troth.capabilities",
    "ClientFacts": "troth.capabilities",
    "Comparison": "troth.capabilities",
    "Current": "troth.plugins.honest",
    "Era": "troth.register.model",
    "Facts": "troth.capabilities",
    "Need": "troth.gating",
    "Problem": "troth.capabilities",
    "ProblemKind": "troth.capabilities",
    "Requirement": "troth.gating",
    "ServerCapabilities": "troth.capabilities",
    "Side": "troth.register.model",
    "Troth": "troth.plugins.fastmcp_source",
    "Visible": "troth.gating",
    "any_of": "troth.gating",
    "build": "troth.capabilities",
    "build_client": "troth.capabilities",
    "compare": "troth.capabilities",
    "current": "troth.plugins.honest",
    "experimental": "troth.gating",
    "extension": "troth.gating",
    "install": "troth.plugins.install",
    "missing": "troth.gating",
    "notify_prompts_changed": "troth.plugins.install",
    "notify_resource_updated": "troth.plugins.install",
    "notify_resources_changed": "troth.plugins.install",
    "notify_tools_changed": "troth.plugins.install",
    "read_client": "troth.capabilities",
    "read_server": "troth.capabilities",
    "requires": "troth.gating",
    "task": "troth.plugins.tasking",
    "visible": "troth.gating",
}

__all__ = [
    "ELICITATION",
    "ELICITATION_FORM",
    "ELICITATION_URL",
    "ROOTS",
    "ROOTS_LIST_CHANGED",
    "SAMPLING",
    "SAMPLING_CONTEXT",
    "SAMPLING_TOOLS",
    "TASKS",
    "TASKS_CANCEL",
    "TASKS_ELICITATION",
    "TASKS_LIST",
    "TASKS_SAMPLING",
    "Built",
    "CapabilityNotMet",
    "ClientCapabilities",
    "ClientFacts",
    "Comparison",
    "Current",
    "Era",
    "Facts",
    "Need",
    "Problem",
    "ProblemKind",
    "Requirement",
    "ServerCapabilities",
    "Side",
    "Troth",
    "Visible",
    "any_of",
    "build",
    "build_client",
    "compare",
    "current",
    "experimental",
    "extension",
    "install",
    "missing",
    "notify_prompts_changed",
    "notify_resource_updated",
    "notify_resources_changed",
    "notify_tools_changed",
    "read_client",
    "read_server",
    "requires",
    "task",
    "visible",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'troth' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
