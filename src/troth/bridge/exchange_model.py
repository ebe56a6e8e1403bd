"""What goes into an exchange and comes out of it: values. Sans-IO."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - a round is read back from what was sealed
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from troth.bridge.asks import NOTHING
from troth.bridge.questions import QuestionKind  # noqa: TC001

if TYPE_CHECKING:
    from troth.bridge.asks import Asks
    from troth.bridge.model import Frame, Id
    from troth.bridge.outgoing import Lost, Outgoing
    from troth.bridge.questions import Question
    from troth.bridge.replies import Check, Reply

ROUNDS: Final = 8
"""Rounds of questions of one call. Each costs a person's time; a server that wants more goes in circles."""

GATHERING: Final = 0.025
"""Seconds after a question in which further ones of the same moment come: one round instead of several."""

SETTLING: Final = 0.025
"""Seconds that an upstream gets to take an answer in before the call that waited for it. Over HTTP these are two
requests, of which either may be read first; and servers look at folders before they know them."""

DEADLINE: Final = 50.0
"""Seconds in which a question is answered unless configured. Requests of the SDKs give up after 60."""

KEEPING: Final = 300.0
"""Seconds for which a parked call waits for its host unless configured: its question may need a person."""


MOST_STATE: Final = 1024 * 1024
"""Characters of an upstream's ``requestState``. Hosts send it back, sealed by us, in bodies of a few megabytes."""


class State(StrEnum):
    """Where an exchange is."""

    NEW = "new"
    OPEN = "open"
    ASKING = "asking"
    PARKED = "parked"
    DONE = "done"


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a question whose answer comes with a retry that knows nothing else.

    Attributes:
        kind: What it is about.
        defaults: Defaults of the fields of a form.
    """

    kind: QuestionKind
    defaults: Mapping[str, Raw] = {}


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """Questions to a modern host: what its ``input_required`` says, and what its ``requestState`` must remember.

    JSON holds a round, and ``msgspec`` reads it back. Nothing needs the entries again, so they need not be kept.

    Attributes:
        entries: ``inputRequests``, by key.
        number: Number of the round, from 1.
        state: The upstream's own ``requestState``; None for none. It goes back byte for byte.
        answers: Answers to other questions of this round that did not go to the host.
        expected: What the answers must be, by key.
        reissue: Whether the retry sends the call anew (after -32042), without answers.
    """

    entries: Mapping[str, object]
    number: int
    state: str | None = None
    answers: Mapping[str, Raw] = {}
    expected: Mapping[str, Expected] = {}
    reissue: bool = False


class HostQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question as a legacy host gets it.

    Attributes:
        key: Name of the question within the call.
        method: Method of the request.
        params: Its params; None for none.
        elicitation: Id of a visit to an address, whose completion the host may hear of; empty for none.
    """

    key: str
    method: str
    params: Mapping[str, object] | None
    elicitation: str = ""


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a host on its way to an upstream.

    Attributes:
        frame: The host's request. Ids `1` and `"1"` are different, and so are progress tokens.
        host_revision: Revision of the host.
        upstream: Name of the upstream, for messages.
        upstream_revision: Revision of the upstream.
        prefix: Text before the names and URIs of the upstream; empty for none.
        params: Members of ``params`` to put in the place of the host's: the upstream's own name or URI.
        name: Value of the ``Mcp-Name`` header (modern HTTP); empty for none.
        headers: Further headers, ``Mcp-Param-...`` (modern HTTP).
        level: Least severity of log messages that the host wants. None: all (legacy, before any ``setLevel``), or none
            (modern, where a request must ask for them).
        timeout: Seconds without a sign of life after which the request is given up; None for none.
        inline_links: Whether resource links in the result become text: this host gets no ``resources``.
        waiting: What a legacy upstream asked outside of calls, for a modern host: it answers that first, and then the
            call is sent.
        leaves: Whether roots that the upstream still asks for at the end of the call are left to the shell (`Leave`).
    """

    frame: Frame
    host_revision: str
    upstream: str
    upstream_revision: str
    prefix: str = ""
    params: Mapping[str, object] = {}
    name: str = ""
    headers: Mapping[str, str] = {}
    level: str | None = None
    timeout: float | None = None
    inline_links: bool = False
    asks: Asks = NOTHING
    elsewhere: Asks = NOTHING
    mark: str = ""
    deadline: float = DEADLINE
    keep: float = KEEPING
    resume: Round | None = None
    check: Check | None = None
    waiting: tuple[Question, ...] = ()
    leaves: bool = False


class Told(StrEnum):
    """What a message to the host beside its answer is; a full queue loses these first."""

    PROGRESS = "progress"
    LOG = "log"
    COMPLETE = "complete"
    """A visit to an address is complete. Never lost."""


# Events


class HostCalled(msgspec.Struct, frozen=True):
    """The host's request is to be sent. Once, and first."""


class HostCancelled(msgspec.Struct, frozen=True):
    """The host withdrew the request (``notifications/cancelled``), or its session ended."""

    reason: str = ""


class HostGone(msgspec.Struct, frozen=True):
    """The connection that carries the answer ended."""


class UpstreamAnswered(msgspec.Struct, frozen=True):
    """The response or error came, unopened; its id is ours."""

    frame: Frame


class UpstreamAsked(msgspec.Struct, frozen=True):
    """A request of a legacy upstream that belongs to this exchange."""

    frame: Frame


class UpstreamNotified(msgspec.Struct, frozen=True):
    """A notification that belongs to this exchange; a progress token in it is ours."""

    frame: Frame


class UpstreamLost(msgspec.Struct, frozen=True):
    """No answer will come."""

    lost: Lost


class HostAnswered(msgspec.Struct, frozen=True):
    """A legacy host answered a question.

    Attributes:
        key: Which (`HostQuestion.key`).
        frame: Its response or error.
    """

    key: str
    frame: Frame


class OthersAnswered(msgspec.Struct, frozen=True):
    """A question was answered without the host (`AskOthers`).

    Attributes:
        key: Which (`Question.key`).
        reply: The answer, as the upstream understands it (`troth.bridge.replies`).
    """

    key: str
    reply: Reply


class HostRetried(msgspec.Struct, frozen=True):
    """A modern host came again for a call that is parked.

    Attributes:
        frame: Its request, with ``inputResponses``. Its principal, method and digest are known to be those of the call.
        round: Number of the round that its ``requestState`` names.
        asks: What the host can be asked now, of what the upstream was told.
        level: Least severity of log messages that it wants now.
    """

    frame: Frame
    round: int
    asks: Asks
    level: str | None = None


class Due(msgspec.Struct, frozen=True):
    """A timer that was asked for (`WakeMe`) ran out."""

    name: str


Event = (
    HostCalled
    | HostCancelled
    | HostGone
    | HostAnswered
    | HostRetried
    | OthersAnswered
    | UpstreamAnswered
    | UpstreamAsked
    | UpstreamNotified
    | UpstreamLost
    | Due
)


# Commands


class SendUpstream(msgspec.Struct, frozen=True):
    """Send the request."""

    outgoing: Outgoing


class CancelUpstream(msgspec.Struct, frozen=True):
    """Give the request up, in the way of the upstream's era. Nothing more is heard of it."""

    reason: str


class AnswerUpstream(msgspec.Struct, frozen=True):
    """Answer a request of the upstream.

    Attributes:
        id: The upstream's id of it.
        line: The response or error on one line.
        kind: What was asked; None for what is no question.
    """

    id: Id
    line: bytes
    kind: QuestionKind | None = None


class Leave(msgspec.Struct, frozen=True):
    """The call is over, and a question of a legacy upstream is not: on a pipe, it need not have been of the call.

    Attributes:
        question: It asks for roots.
    """

    question: Question


class SendHost(msgspec.Struct, frozen=True):
    """Send a message on the stream of the host's request."""

    line: bytes
    sort: Told


class AskHost(msgspec.Struct, frozen=True):
    """Send these requests to a legacy host, on the stream of its request."""

    questions: tuple[HostQuestion, ...]


class AskOthers(msgspec.Struct, frozen=True):
    """Have these answered without the host."""

    questions: tuple[Question, ...]


class Unask(msgspec.Struct, frozen=True):
    """These questions need no answer any more: cancel the host's requests, take them back from others.

    Attributes:
        keys: Which.
        reason: Why, in words.
    """

    keys: tuple[str, ...]
    reason: str


class Park(msgspec.Struct, frozen=True):
    """Answer the host's request with these questions. The exchange lives on, and waits for a retry."""

    round: Round


class Refuse(msgspec.Struct, frozen=True):
    """Answer a retry with an error. The exchange lives on.

    Attributes:
        line: The error on one line.
        code: Its code.
    """

    line: bytes
    code: int


class Note(msgspec.Struct, frozen=True):
    """Say in the log what was left out of a host's answer.

    Attributes:
        key: Of the question.
        notes: One sentence each, without a word of the host's.
    """

    key: str
    notes: tuple[str, ...]


class WakeMe(msgspec.Struct, frozen=True):
    """Give a `Due` of this name after so many seconds, in the place of an earlier one of the name.

    Attributes:
        name: Name of the timer within the exchange.
        seconds: When; None to forget it. All are forgotten when the exchange ends.
    """

    name: str
    seconds: float | None


class Finish(msgspec.Struct, frozen=True):
    """The exchange ended.

    Attributes:
        line: The response or error for the host on one line; None if it gets none.
        code: Code of the error; None for a result, and without a line.
        round: Questions that the host gets as its answer instead; nothing waits for them here. None for none.
    """

    line: bytes | None
    code: int | None = None
    round: Round | None = None


Command = (
    SendUpstream
    | CancelUpstream
    | AnswerUpstream
    | Leave
    | SendHost
    | AskHost
    | AskOthers
    | Unask
    | Park
    | Refuse
    | Note
    | WakeMe
    | Finish
)
