"""What a handler on the SDK (``mcp`` 2) may send to its host, and what is known of a legacy session."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp_types import ErrorData
from pydantic import BaseModel

from troth.gating import CapabilityNotMet, Decision, Need, Primitive, decide
from troth.plugins.announcing import TASKS, Audience, Change
from troth.plugins.asking import ASKING, foreign, needed, place
from troth.plugins.telemetry import note_refusal
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.server.connection import Connection
    from mcp.server.context import HandlerResult, ServerRequestContext
    from mcp.server.subscriptions import ServerEvent, SubscriptionBus

    from troth.gating import Requirement
    from troth.plugins.honest import Current

logger = logging.getLogger(__name__)

STATE: Final = "io.troth/session"
"""Where a connection's scratch state keeps what we know of it."""

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Levels of log messages, the least severe first (RFC 5424)."""

NOTICES: Final[Mapping[str, Callable[[], Any]]] = {
    "tools": types.ToolListChangedNotification,
    "prompts": types.PromptListChangedNotification,
    "resources": types.ResourceListChangedNotification,
}
"""Family -> the notification that its list changed."""

EVENTS: Final[Mapping[str, Callable[[], ServerEvent]]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
"""Family -> what is published on a bus for it."""

CHANGED: Final[Mapping[str, str]] = {f"notifications/{family}/list_changed": family for family in NOTICES}
"""Method of a notification -> its family."""

UNASKED: Final = (
    "%s cannot be asked in the course of a call at %s: mark what asks with @troth.requires(...), so that its calls can "
    "wait for the answer; asked at %s"
)
"""What the log says to the author of a handler that asks and does not say so."""

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"


def connection_of(session: ServerSession) -> Connection:
    """The connection behind a session, for which the SDK has no public name."""
    return cast("Connection", vars(session)["_connection"])


def principal_of(ctx: ServerRequestContext[Any, Any]) -> tuple[str | None, ...] | None:
    """Who a request is authorized for; None where nobody is."""
    user: object = getattr(ctx.request, "scope", {}).get("user")
    token = getattr(user, "access_token", None)
    if token is None:
        return None
    from mcp.server.auth.provider import principal_components

    return principal_components(token)


def as_dict(result: HandlerResult) -> dict[str, Any]:
    """A result that may be changed: frameworks hand out models in some places."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})


def event(change: Change) -> ServerEvent:
    """A change as the SDK's buses carry it."""
    return EVENTS[change.family]() if change.uri is None else ResourceUpdated(uri=change.uri)


def change_of(published: ServerEvent) -> Change | None:
    """A change out of what came over a bus."""
    if isinstance(published, ResourceUpdated):
        return Change("resources", published.uri)
    return next((Change(family) for family, kind in EVENTS.items() if type(published) is kind), None)


def notification(change: Change) -> Any:
    """A change as a legacy notification."""
    if change.uri is None:
        return NOTICES[change.family]()
    return types.ResourceUpdatedNotification(params=types.ResourceUpdatedNotificationParams(uri=change.uri))


class NotMet(MCPError, CapabilityNotMet):  # noqa: N818 - a kind of CapabilityNotMet
    """``CapabilityNotMet`` in a form that the SDK sends as the error of the request."""

    def __init__(self, decision: Decision, where: str = "") -> None:
        # The two bases want different arguments, so their own constructors are passed by.
        Exception.__init__(self, decision.code, decision.message, decision.data)
        self.error = ErrorData(code=decision.code, message=decision.message, data=decision.data)
        self.decision = decision
        self.missing = decision.missing
        self.primitive = decision.primitive
        self.where = where
        if where:
            # A note stands in tracebacks, and in nothing that a framework sends to the host.
            self.add_note(f"asked at {where}")


def not_met(asker: Current, method: str, decision: Decision, where: str = "") -> NotMet:
    """The refusal that a decision says, noted in logs and traces."""
    note_refusal(asker, method, decision, where)
    return NotMet(decision, where)


@dataclass(eq=False)
class SessionState:
    """What is known of a legacy session.

    Attributes:
        asker: The host, and what was declared to it.
        session: A session of the SDK, for messages outside requests.
        level: Least level of log messages that the host wants, as a place in ``LEVELS``.
        subscribed: URIs whose updates it wants.
        audience: How it is told of changes; None if it is not.
        leave: Ends that.
        status: Tells it of a task, by its id.
    """

    asker: Current
    session: ServerSession
    level: int = 0
    subscribed: set[str] = field(default_factory=set[str])
    audience: Audience | None = None
    leave: Callable[[], None] | None = None
    status: Callable[[str], Awaitable[None]] | None = None

    async def tell(self, change: Change) -> None:
        """Sends a change, if it was promised and, for an update, asked for."""
        if change.family == TASKS:
            if self.status is not None and change.uri is not None:
                await self.status(change.uri)
        elif self.wants(change):
            await self.session.send_notification(notification(change))

    def wants(self, change: Change) -> bool:
        """Whether the host is to be told of a change."""
        if change.uri is None:
            return self.asker.built.has(f"{change.family}.listChanged")
        return self.asker.built.has("resources.subscribe") and change.uri in self.subscribed

    def noted(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Takes note of a request that was answered."""
        given = params or {}
        if method == "logging/setLevel" and given.get("level") in LEVELS:
            self.level = LEVELS.index(given["level"])
        elif method == "resources/subscribe":
            self.subscribed.add(str(given.get("uri")))
        elif method == "resources/unsubscribe":
            self.subscribed.discard(str(given.get("uri")))


class Session(ServerSession):
    """A session of the SDK that sends what was promised, and asks for what the host declared.

    Attributes:
        asker: The host.
        state: What is known of a legacy session.
        refused: The last question that was refused before it left.
        agreed: What the acknowledgement of a listen says beside the framework's kinds.
        acknowledged: Called when it was sent.
    """

    def __init__(
        self,
        inner: ServerSession,
        asker: Current,
        state: SessionState | None,
        method: str,
        bus: SubscriptionBus,
    ) -> None:
        vars(self).update(vars(inner))
        self.asker = asker
        self.state = state
        self._method = method
        self._bus = bus
        self.refused: NotMet | None = None
        self.agreed: Mapping[str, Any] = {}
        self.acknowledged: Callable[[], None] | None = None

    def moved(self, channel: Any, connection: Connection) -> Session:
        """The same session on another channel, for work that goes on when the request has been answered."""
        session = Session(self, self.asker, self.state, self._method, self._bus)
        vars(session).update(_request_outbound=channel, _connection=connection)
        return session

    def renew(self, by: Session) -> None:
        """Takes over what another request of the same call says: what the host declares and hears from here on."""
        self.asker = by.asker
        vars(self)["_allowed_log_levels"] = vars(by)["_allowed_log_levels"]
        own, other = connection_of(self), connection_of(by)
        own.client_params, own.client_capabilities = other.client_params, other.client_capabilities

    def swallowed(self, result: Mapping[str, Any]) -> bool:
        """Whether a result only repeats a refusal in words, as a framework does that makes results of errors."""
        if self.refused is None or not result.get("isError"):
            return False
        return any(self.refused.message in str(block.get("text", "")) for block in result.get("content") or ())

    async def send_request(self, request: Any, result_type: Any, *args: Any, **kwargs: Any) -> Any:
        """Asks the host, if it declared that it answers this.

        Raises:
            CapabilityNotMet: It did not. Nothing is sent.
            NoBackChannelError: The revision has no requests to hosts, and the handler is not marked as one that asks.
        """
        params = request.params
        self.check(request.method, None if params is None else params.model_dump(by_alias=True, exclude_none=True))
        unset = {member: None for member in foreign(request.method, self.asker.revision) if hasattr(params, member)}
        if unset:
            request = request.model_copy(update={"params": cast("Any", params).model_copy(update=unset)})
        try:
            return await super().send_request(request, result_type, *args, **kwargs)
        except NoBackChannelError:
            if self.asker.era is Era.MODERN and request.method in ASKING:
                logger.warning(UNASKED, request.method, self.asker.revision, place())
            raise

    def check(self, method: str, params: Mapping[str, object] | None) -> None:
        """Raises the refusal of a request that the host did not declare.

        Raises:
            CapabilityNotMet: It did not.
        """
        need = needed(method, params)
        if not self.asker.can(need):
            raise self.refusal(method, need)

    def refusal(self, method: str, need: Requirement) -> NotMet:
        """The refusal of a request that the host did not declare."""
        decision = decide(Primitive("tools", method), Need(need), self.asker.client)
        words = f"Client missing capabilities to answer '{method}': {', '.join(decision.missing)}"
        self.refused = not_met(self.asker, method, replace(decision, message=words), place())
        return self.refused

    async def send_notification(self, notification: Any, related_request_id: types.RequestId | None = None) -> None:
        """Tells the host, if it was promised that it is told."""
        method: str = notification.method
        if self._method == "subscriptions/listen":
            await self._streamed(notification, related_request_id)
            return
        uri = str(notification.params.uri) if method == UPDATED else None
        if method not in CHANGED and uri is None:
            await super().send_notification(notification, related_request_id)
            return
        change = Change("resources" if uri is not None else CHANGED[method], uri)
        if self.asker.era is Era.MODERN:
            await self._bus.publish(event(change))
        elif self.state is not None and self.state.wants(change):
            await super().send_notification(notification, related_request_id)
        else:
            logger.info("%s was not sent: the host was not promised it, or did not ask for it", method)

    async def _streamed(self, notification: Any, related_request_id: types.RequestId | None) -> None:
        """What goes out on the stream of a listen; the acknowledgement says what else is told there."""
        first = notification.method == ACKNOWLEDGED
        if first and self.agreed:
            kinds = notification.params.notifications.model_copy(update=dict(self.agreed))
            params = notification.params.model_copy(update={"notifications": kinds})
            notification = notification.model_copy(update={"params": params})
        await super().send_notification(notification, related_request_id)
        if first and self.acknowledged is not None:
            self.acknowledged()

    async def send_log_message(self, level: Any, data: Any, *args: Any, **kwargs: Any) -> None:
        """Sends a log message, if logging is declared and the host wants the level."""
        if not self.asker.built.has("logging"):
            logger.info("a log message was not sent: logging is not declared to this host")
        elif self.state is None or level not in LEVELS or LEVELS.index(level) >= self.state.level:
            # The method is deprecated with the capability (SEP-2577); hosts of today still want messages.
            await super().send_log_message(level, data, *args, **kwargs)  # pyright: ignore[reportDeprecated]
