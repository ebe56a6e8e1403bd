"""What a server or client really does: the only ground on which a declaration is built."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache

from troth.capabilities.paths import nearest, shown
from troth.register.load import register

FAMILIES = frozenset({"prompts", "resources", "tools"})
"""Members whose lists can change."""

SERVER_TASKS = frozenset({"cancel", "list", "requests.tools.call"})
"""What core tasks (2025-11-25) offer on a server, as paths below ``tasks``."""

CLIENT_TASKS = frozenset({"cancel", "list", "requests.elicitation.create", "requests.sampling.createMessage"})
"""What core tasks (2025-11-25) offer on a client, as paths below ``tasks``."""

MODES = frozenset({"form", "url"})
"""Modes of elicitation."""

Settings = Mapping[str, Mapping[str, object]]
"""Keys of an open map with their settings objects."""


@cache
def listen_kinds() -> Mapping[str, str]:
    """The row that each field of the filter of ``subscriptions/listen`` delivers, by row id."""
    related = next(related for related in register().related if related.id == "REL-subscriptionFilter")
    return {row_id: name for name, row_id in related.fields.items() if row_id in register().by_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a server implements and can push. Everything is off unless said.

    Attributes:
        tools: ``tools/list`` and ``tools/call`` are served and there is something to list.
        prompts: The same of ``prompts/list`` and ``prompts/get``.
        resources: The same of ``resources/list`` and ``resources/read``; templates count.
        completions: ``completion/complete`` is answered.
        log_messages: Code of the server may send ``notifications/message``.
        log_level: ``logging/setLevel`` is served, which a legacy declaration promises.
        announces: Families (``prompts``, ``resources``, ``tools``) whose list can change and whose changes are
            announced on the session (legacy).
        subscribe: ``resources/subscribe`` is served and updates are sent (legacy).
        push: The legacy connection can be pushed to: stdio, or an HTTP session with a GET stream.
        listen: Fields of the filter of ``subscriptions/listen`` that are really delivered (modern): of
            ``toolsListChanged``, ``promptsListChanged``, ``resourcesListChanged``, ``resourceSubscriptions``.
        tasks: What core tasks offer: of ``requests.tools.call``, ``cancel``, ``list``. ``list`` only where tasks are
            bound to their requestor (2025-11-25 basic/utilities/tasks).
        extensions: Extensions that the server implements, with their settings; ``{}`` for none.
        experimental: Experimental members that the operator configured.

    Raises:
        ValueError: A name in ``announces``, ``listen`` or ``tasks`` is unknown; the message names the nearest.
    """

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    completions: bool = False
    log_messages: bool = False
    log_level: bool = False
    announces: Collection[str] = frozenset[str]()
    subscribe: bool = False
    push: bool = False
    listen: Collection[str] = frozenset[str]()
    tasks: Collection[str] = frozenset[str]()
    extensions: Settings = field(default_factory=dict[str, Mapping[str, object]])
    experimental: Settings = field(default_factory=dict[str, Mapping[str, object]])

    def __post_init__(self) -> None:
        object.__setattr__(self, "announces", _names("announces", self.announces, FAMILIES))
        object.__setattr__(self, "listen", _names("listen", self.listen, frozenset(listen_kinds().values())))
        object.__setattr__(self, "tasks", _names("tasks", self.tasks, SERVER_TASKS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFacts:
    """What a client answers. Everything is off unless said.

    Attributes:
        roots: ``roots/list`` is answered.
        roots_changed: ``notifications/roots/list_changed`` will be sent when the roots change (legacy).
        sampling: ``sampling/createMessage`` is answered.
        sampling_tools: And may carry tools.
        sampling_context: And ``includeContext`` other than ``none`` is honoured. A proxy cannot honour it by itself.
        elicitation: Modes of ``elicitation/create`` that are answered: of ``form``, ``url``.
        tasks: What core tasks offer: of ``requests.sampling.createMessage``, ``requests.elicitation.create``,
            ``cancel``, ``list``.
        extensions: Extensions that the client implements, with their settings; ``{}`` for none.
        experimental: Experimental members that the operator configured.

    Raises:
        ValueError: A name in ``elicitation`` or ``tasks`` is unknown; the message names the nearest.
    """

    roots: bool = False
    roots_changed: bool = False
    sampling: bool = False
    sampling_tools: bool = False
    sampling_context: bool = False
    elicitation: Collection[str] = frozenset[str]()
    tasks: Collection[str] = frozenset[str]()
    extensions: Settings = field(default_factory=dict[str, Mapping[str, object]])
    experimental: Settings = field(default_factory=dict[str, Mapping[str, object]])

    def __post_init__(self) -> None:
        object.__setattr__(self, "elicitation", _names("elicitation", self.elicitation, MODES))
        object.__setattr__(self, "tasks", _names("tasks", self.tasks, CLIENT_TASKS))


def _names(what: str, given: Collection[str], known: frozenset[str]) -> frozenset[str]:
    for name in given:
        if name not in known:
            raise ValueError(f"{what} knows no {shown(name)!r}{nearest(name, known)}")
    return frozenset(given)
