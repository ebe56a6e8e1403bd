"""When a capability may be declared: one rule per row of the register.

A rule sees the facts and what the revision says of the row, and gives a reason with its answer. It looks at nothing
else: parents, the author's own set and revisions that lack the row are the business of ``build``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from troth.capabilities.facts import ClientFacts, Facts, listen_kinds
from troth.capabilities.paths import is_open
from troth.register.model import Channel, Definition, Row

if TYPE_CHECKING:
    from collections.abc import Collection

Reason = tuple[bool, str]
"""Whether the facts carry the promise, and why, to stand after "because"."""

ServerRule = Callable[[Facts, Row, Definition], Reason]
ClientRule = Callable[[ClientFacts, Row, Definition], Reason]


def _fact(name: str, yes: str, no: str) -> Callable[[object, Row, Definition], Reason]:
    def rule(facts: object, _row: Row, _definition: Definition) -> Reason:
        return (True, yes) if getattr(facts, name) else (False, no)

    return rule


def _listened(facts: Facts, row: Row) -> Reason:
    kind = listen_kinds()[row.id]
    if not facts.listen:
        return False, "subscriptions/listen is not served"
    if kind in facts.listen:
        return True, f"subscriptions/listen delivers {kind}"
    return False, f"subscriptions/listen does not deliver {kind}"


def _pushed(facts: Facts, what: str) -> Reason:
    if facts.push:
        return True, f"{what}, and the connection can be pushed to"
    return False, f"{what}, but there is no channel to push on (stdio, or an HTTP session with a GET stream)"


def _list_changed(facts: Facts, row: Row, definition: Definition) -> Reason:
    if definition.channel is Channel.LISTEN:
        return _listened(facts, row)
    family = row.key[0]
    if family not in facts.announces:
        return False, f"changes of the list of {family} are not announced"
    return _pushed(facts, f"changes of the list of {family} are announced")


def _subscribe(facts: Facts, row: Row, definition: Definition) -> Reason:
    if definition.channel is Channel.LISTEN:
        return _listened(facts, row)
    if not facts.subscribe:
        return False, "resources/subscribe is not served"
    return _pushed(facts, "resources/subscribe is served")


def _logging(facts: Facts, _row: Row, definition: Definition) -> Reason:
    """Log messages ride the stream of the request that they are about, so no push channel is asked for."""
    if not facts.log_messages:
        return False, "no log messages are sent"
    if definition.channel is Channel.REQUEST_STREAM:
        return True, "log messages can be sent on the stream of a request that opts in"
    if facts.log_level:
        return True, "logging/setLevel is served and log messages can be sent"
    return False, "logging/setLevel is not served, which this revision promises with logging"


def _offered(tasks: Collection[str], below: str) -> bool:
    return any(path == below or path.startswith(f"{below}.") for path in tasks)


def _server_task(facts: Facts, row: Row, _definition: Definition) -> Reason:
    below = ".".join(row.key[1:]) or "requests"
    if not _offered(facts.tasks, below):
        return False, f"core tasks offer no {below}"
    if below.startswith("requests") and not facts.tools:
        return False, "no tools are served that could run as tasks"
    return True, f"core tasks offer {below}"


def _client_task(facts: ClientFacts, row: Row, _definition: Definition) -> Reason:
    below = ".".join(row.key[1:]) or "requests"
    tasks = {
        path
        for path in facts.tasks
        if (facts.sampling or ".sampling." not in path) and (facts.elicitation or ".elicitation." not in path)
    }
    if _offered(tasks, below):
        return True, f"core tasks offer {below}"
    return False, f"core tasks offer no {below}, or its requests are not answered"


def _elicitation(facts: ClientFacts, _row: Row, definition: Definition) -> Reason:
    """Where the object is open the revision knows no modes: the member then promises forms."""
    if not facts.elicitation:
        return False, "elicitation/create is not answered"
    if is_open(definition) and "form" not in facts.elicitation:
        return False, "forms are not answered, and this revision knows no other questions"
    return True, f"elicitation/create is answered ({', '.join(sorted(facts.elicitation))})"


def _mode(facts: ClientFacts, row: Row, _definition: Definition) -> Reason:
    mode = row.key[-1]
    if mode in facts.elicitation:
        return True, f"elicitation/create is answered in {mode} mode"
    return False, f"elicitation/create is not answered in {mode} mode"


SERVER: Mapping[str, ServerRule] = {
    "CAP-12": _logging,
    "CAP-13": _fact("completions", "completion/complete is answered", "completion/complete is not answered"),
    "CAP-14": _fact("prompts", "prompts are served", "no prompts are served"),
    "CAP-15": _list_changed,
    "CAP-16": _fact("resources", "resources are served", "no resources are served"),
    "CAP-17": _subscribe,
    "CAP-18": _list_changed,
    "CAP-19": _fact("tools", "tools are served", "no tools are served"),
    "CAP-20": _list_changed,
    "CAP-21": _server_task,
    "CAP-22": _server_task,
    "CAP-23": _server_task,
    "CAP-24-requests": _server_task,
    "CAP-24-requests-tools": _server_task,
    "CAP-24": _server_task,
}

CLIENT: Mapping[str, ClientRule] = {
    "CAP-02": _fact("roots", "roots/list is answered", "roots/list is not answered"),
    "CAP-03": _fact("roots_changed", "changes of the roots are announced", "changes of the roots are not announced"),
    "CAP-04": _fact("sampling", "sampling/createMessage is answered", "sampling/createMessage is not answered"),
    "CAP-05": _fact("sampling_context", "context of servers is included", "context of servers is not included"),
    "CAP-06": _fact("sampling_tools", "sampling may carry tools", "sampling may not carry tools"),
    "CAP-07": _elicitation,
    "CAP-08": _mode,
    "CAP-09": _mode,
    "CAP-10": _client_task,
    "CAP-10-list": _client_task,
    "CAP-10-cancel": _client_task,
    "CAP-10-requests": _client_task,
    "CAP-10-requests-sampling": _client_task,
    "CAP-10-sampling": _client_task,
    "CAP-10-requests-elicitation": _client_task,
    "CAP-10-elicitation": _client_task,
}

HOLLOW: Mapping[str, tuple[str, ...]] = {
    "CAP-07": ("CAP-08", "CAP-09"),
    "CAP-10": ("CAP-10-requests",),
    "CAP-10-requests": ("CAP-10-requests-sampling", "CAP-10-requests-elicitation"),
    "CAP-10-requests-sampling": ("CAP-10-sampling",),
    "CAP-10-requests-elicitation": ("CAP-10-elicitation",),
    "CAP-21": ("CAP-24-requests",),
    "CAP-24-requests": ("CAP-24-requests-tools",),
    "CAP-24-requests-tools": ("CAP-24",),
}
"""Objects that promise nothing without one of these members, where the revision defines the members."""
