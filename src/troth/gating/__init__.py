"""Gating: a primitive that a client cannot use is hidden from it, and refused if it is used all the same. Pure.

Import the names from here; those that authors of servers need are also on ``troth``. This room decides and never acts:
frameworks' plug-ins and the gateway ask it, and write what it says.
"""

from troth.gating.decide import (
    CapabilityNotMet,
    Decision,
    Primitive,
    as_client,
    decide,
    missing,
)
from troth.gating.marks import marked, requires
from troth.gating.need import META_KEY, OTHER_KEY, Need, both, from_meta, with_need
from troth.gating.needs import GatingSettings, Needs, read_needs, read_settings, settings_from_environment
from troth.gating.requirement import (
    ELICITATION,
    ELICITATION_FORM,
    ELICITATION_URL,
    NEVER,
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
    Requirement,
    any_of,
    experimental,
    extension,
)
from troth.gating.view import Hidden, Visible, primitive, stated, visible

__all__ = [
    "ELICITATION",
    "ELICITATION_FORM",
    "ELICITATION_URL",
    "META_KEY",
    "NEVER",
    "OTHER_KEY",
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
    "CapabilityNotMet",
    "Decision",
    "GatingSettings",
    "Hidden",
    "Need",
    "Needs",
    "Primitive",
    "Requirement",
    "Visible",
    "any_of",
    "as_client",
    "both",
    "decide",
    "experimental",
    "extension",
    "from_meta",
    "marked",
    "missing",
    "primitive",
    "read_needs",
    "read_settings",
    "requires",
    "settings_from_environment",
    "stated",
    "visible",
    "with_need",
]
