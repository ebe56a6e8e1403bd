"""The register: what each capability means in each protocol revision. The only place that knows a revision.

Everything else in Troth asks here. A field that a revision does not define has no definition in it; absence is the
answer, so no code compares revision strings. ``register()`` is read from the package's own data once per process.

Source of the facts: the official specification and schemas of the five revisions; every row names file and line.
"""

from troth.register.load import Register, register
from troth.register.model import (
    Certainty,
    Channel,
    Definition,
    Deprecation,
    Era,
    ErrorCode,
    Gap,
    Gate,
    HostAnswer,
    HostProfile,
    HostUse,
    Kind,
    MethodUse,
    Norm,
    Quirk,
    Related,
    Row,
    Side,
)

__all__ = [
    "Certainty",
    "Channel",
    "Definition",
    "Deprecation",
    "Era",
    "ErrorCode",
    "Gap",
    "Gate",
    "HostAnswer",
    "HostProfile",
    "HostUse",
    "Kind",
    "MethodUse",
    "Norm",
    "Quirk",
    "Register",
    "Related",
    "Row",
    "Side",
    "register",
]
