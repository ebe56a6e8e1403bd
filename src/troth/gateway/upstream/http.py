"""A link over Streamable HTTP, for both eras: one POST per frame, answered by JSON or by an event stream.

Rules of this file:

- Each request is one task of the crew; `HttpLink.abort` and `HttpLink.close` end it, and then nothing is told of it.
- An event is handed on when it came, not when its stream ends. A body is never held but for being one frame.
- A POST is sent once. A redirect is followed where it stays at the origin and keeps method and body (`FOLLOWED`); what
  else moves is a problem with the place it moved to. Source: RFC 9110, 15.4; rule 22 of the gateway.
- A broken stream of a request is resumed by GET with ``Last-Event-ID``, never by a second POST. Source:
  2025-03-26/basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import anyio
from yarl import URL

from troth.gateway.settings import reserved
from troth.gateway.upstream.client import FaultError
from troth.gateway.upstream.link import NO_HEADERS, Problem
from troth.gateway.upstream.veil import Veil
from troth.wire.errors import LinkError
from troth.wire.sse import EventStream
from troth.wire.words import excerpt, printable

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from troth.bridge import Id
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.settings import UpstreamSettings
    from troth.gateway.upstream.client import HttpClient, Response
    from troth.gateway.upstream.link import Receiver
    from troth.wire.sse import Event

_log = logging.getLogger(__name__)

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

REDIRECTS: Final = 3
"""Most redirects in a row."""

FOLLOWED: Final[Mapping[str, frozenset[int]]] = {
    "POST": frozenset({307, 308}),
    "GET": frozenset({301, 302, 307, 308}),
}
"""Redirects that keep the method, and its body. Source: RFC 9110, 15.4."""

ERROR_BODY: Final = 64 * 1024
"""Most bytes of an answer with an error status that are read."""

DRAIN: Final = 1.0
"""Seconds that a server gets to end a stream whose response came, so that the connection can be used again."""

RETRY_LEAST: Final = 0.1
RETRY: Final = 1.0
RETRY_MOST: Final = 60.0
"""Seconds before a broken stream is resumed: at least, where the server names none, and at most."""

RESUME_FAILURES: Final = 5
"""Attempts in a row that bring no stream, after which an answer is given up."""

RESUMES: Final = 1000
"""Most streams in a row that bring no event: servers may let a client ask again and again during a long call."""

AFTER: Final = 3600.0
"""Longest ``Retry-After`` that is believed, in seconds."""

_COMMON: Final = {"accept-encoding": "identity", "user-agent": "troth"}
_HEADERS: Final = {
    "POST": {"accept": f"{JSON}, {EVENTS}", "content-type": JSON},
    "GET": {"accept": EVENTS},
    "DELETE": {},
}

_FINAL: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 415, 501})
"""Statuses that tell that the stream outside requests cannot be had; others may pass."""


def address_of(url: str) -> URL:
    """Reads the address of an upstream.

    Raises:
        LinkError: It is none, or not of HTTP.
    """
    advice = "write it like https://example.com/mcp"
    try:
        address = URL(url)
    except ValueError:
        address = URL()
    shown = excerpt(url.partition("?")[0].rpartition("@")[2])
    if address.scheme not in ("http", "https") or not address.host:
        raise LinkError("this is no URL of a server over HTTP", where=shown, advice=advice)
    return address


@dataclass(slots=True)
class Stream:
    """What is known of one event stream, however often it is resumed.

    Attributes:
        last_id: The last event id.
        retry: Seconds that the server asks to wait before it is opened again; 0 if it does not.
        events: Events that it brought.
        answered: Whether the response was among them.
    """

    last_id: str = ""
    retry: float = 0.0
    events: int = 0
    answered: bool = False


class HttpLink:
    """The link to one address. See `troth.gateway.upstream.link.Link`.

    Args:
        settings: Whose address and headers.
        receiver: Who hears what arrives.
        crew: Owner of the tasks.
        limits: Sizes and times.
        client: The pool of connections; stays open when the link is closed.

    Raises:
        LinkError: The address is none.
    """

    transport = "http"
    pid = None

    def __init__(
        self, settings: UpstreamSettings, receiver: Receiver, crew: Crew, limits: Limits, client: HttpClient
    ) -> None:
        self.resume = False
        self.why = ""
        self._name = settings.name
        self._address = address_of(settings.url)
        self._url = str(self._address)
        self._moved = ""  # where a redirect led and what was sent was taken
        self._receiver = receiver
        self._crew = crew
        self._limits = limits
        self._client = client
        self._veil = Veil(settings.headers.values())
        own = {name.lower(): value for name, value in settings.headers.items() if not reserved(name)}
        self._headers = {method: _COMMON | own | headers for method, headers in _HEADERS.items()}
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._dropped = 0
        self._closing = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was dropped."""
        return (f"{self._dropped} events dropped that are no messages or too long",) if self._dropped else ()

    def send(self, key: Id | None, line: bytes, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """POSTs one frame in a task of its own."""
        if self._closing or self.why:
            return
        if key is None:
            task = self._crew.spawn(self._tell(line, headers), "http notification")
            self._others.add(task)
            task.add_done_callback(self._others.discard)
        else:
            self._running[key] = self._crew.spawn(self._request(key, line, headers), "http request")

    async def deliver(self, line: bytes, headers: Mapping[str, str] = NO_HEADERS) -> Problem | None:
        """POSTs one frame and waits for the status, for up to ``limits.method`` seconds."""
        if self._closing or self.why:
            return Problem(words=self.why or "closed", sent=False, broken=True)
        with anyio.move_on_after(self._limits.method):
            return await self._attempt(self._exchange(None, line, headers))
        return Problem(words=f"no HTTP answer within {self._limits.method:g} seconds", broken=True)

    def abort(self, key: Id) -> None:
        """Closes the stream of a request."""
        if task := self._running.pop(key, None):
            task.cancel()

    def listen(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Opens the stream outside requests, and keeps it open."""
        if not self._closing and self._listening is None:
            self._listening = self._crew.spawn(self._listen(headers), "http stream")

    async def close(self, headers: Mapping[str, str] | None = None) -> None:
        """Cuts all requests; DELETEs the session, for up to ``limits.stop`` seconds."""
        if self._closing:
            return
        self._closing = True
        tasks = {*self._running.values(), *self._others}
        if self._listening is not None:
            tasks.add(self._listening)
        self._running.clear()
        for task in tasks:
            task.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(self._limits.stop):
            if tasks:
                await asyncio.wait(tasks)
            if headers is not None:
                await self._delete(headers)

    async def _delete(self, headers: Mapping[str, str]) -> None:
        try:
            merged = {**self._headers["DELETE"], **headers}
            response = await self._client.request("DELETE", self._moved or self._url, merged)
        except FaultError as fault:
            _log.debug("upstream %s: its session could not be ended: %s", self._name, fault.words)
        else:
            response.close()

    # One request

    async def _request(self, key: Id, line: bytes, headers: Mapping[str, str]) -> None:
        problem = await self._attempt(self._exchange(key, line, headers))
        if self._running.pop(key, None) is not None:
            self._receiver.ended(key, problem)

    async def _tell(self, line: bytes, headers: Mapping[str, str]) -> None:
        if problem := await self._attempt(self._exchange(None, line, headers)):
            _log.debug("upstream %s did not take a notification: %s", self._name, problem.words)

    async def _attempt(self, work: Coroutine[None, None, Problem | None]) -> Problem | None:
        try:
            return await work
        except FaultError as fault:
            return Problem(words=fault.words, sent=fault.sent, broken=True)
        except Exception:  # a fault of ours must not leave a request without an end
            _log.exception("upstream %s: a request failed by a fault of Troth", self._name)
            return Problem(words="a fault of Troth; see its log")

    async def _exchange(self, key: Id | None, line: bytes, headers: Mapping[str, str]) -> Problem | None:
        response = await self._post(line, headers)
        kept = False
        try:
            problem = await self._answer(key, response, headers)
            kept = problem is None
        except FaultError as fault:
            problem = Problem(words=fault.words, broken=True)
        finally:
            # What is no answer may be one to something else, and the next one too.
            (response.close if kept else response.cut)()
        begun = 200 <= response.status < 300
        return replace(problem, begun=True) if begun and problem is not None else problem

    async def _post(self, line: bytes, headers: Mapping[str, str]) -> Response:
        # A second round trip per call would be the price of a slash, so the new address is kept, but only while it
        # takes what is sent: a server under repair sends clients elsewhere for a while.
        response, url = await self._follow("POST", {**self._headers["POST"], **headers}, line)
        self._moved = url if 200 <= response.status < 300 else ""
        return response

    async def _follow(self, method: str, headers: Mapping[str, str], line: bytes | None = None) -> tuple[Response, str]:
        """Asks, and asks again where a redirect leads that stays at the origin and moves at all."""
        url = self._moved or self._url
        response = await self._client.request(method, url, headers, line)
        for _ in range(REDIRECTS):
            if response.status not in FOLLOWED[method]:
                break
            target = self._own(response.header("location"), url)
            if target is None or target == url:
                break
            response.close()
            url = target
            response = await self._client.request(method, url, headers, line)
        return response, url

    def _own(self, reference: str, base: str) -> str | None:
        """The URL that a server refers to from another, if it lies at the origin of the address."""
        try:
            target = URL(base).join(URL(reference))
            return str(target) if target.origin() == self._address.origin() and target.user is None else None
        except ValueError:
            return None

    async def _answer(self, key: Id | None, response: Response, headers: Mapping[str, str]) -> Problem | None:
        if not 200 <= response.status < 300:
            return await self._refusal(response)
        if key is None:
            await self._drain(response)
            return None
        if value := response.header("mcp-session-id"):
            if not (value.isascii() and value.isprintable() and " " not in value and len(value) <= self._limits.header):
                return Problem(words="the server gives a session id that is no visible ASCII")
            self._receiver.session(key, value)
        coding = response.header("content-encoding")
        if coding and (coding := coding.strip().lower().replace("identity", "")):
            return Problem(words=f"the answer is compressed ({excerpt(coding)}) although that was not accepted")
        kind = kind_of(response)
        if kind == EVENTS:
            return await self._streamed(key, response, headers)
        return await self._document(key, response, kind)

    async def _document(self, key: Id, response: Response, kind: str) -> Problem | None:
        body = await self._body(response, self._limits.line)
        if body is None:
            return Problem(words=f"the answer has more than {self._limits.line} bytes")
        if kind == JSON and body and not body.isspace() and self._receive(key, body):
            return None
        told = f"HTTP {response.status} with {excerpt(kind) or 'no content type'}"
        if kind != JSON:
            return Problem(words=f"{told}, neither {JSON} nor {EVENTS}; it begins: {self._veil.quote(body)}")
        if not body.strip():
            return Problem(words=f"{told} without a body")
        return Problem(words=f"{told} that is no response to the request: {self._veil.quote(body)}")

    def _receive(self, key: Id | None, data: bytes) -> bool:
        """Hands a frame on, unless its request was aborted meanwhile."""
        if self._closing or (key is not None and key not in self._running):
            return False
        return self._receiver.receive(data, key) and key is not None

    async def _body(self, response: Response, limit: int) -> bytes | None:
        """The whole body; None if it is too long. Once it began, a body must end within ``limits.method`` seconds."""
        first = await response.chunk()
        if len(first) <= limit and response.ended:
            return first
        parts, size = [first], len(first)
        try:
            async with asyncio.timeout(self._limits.method):
                while size <= limit and (part := await response.chunk()):
                    parts.append(part)
                    size += len(part)
        except TimeoutError:
            raise FaultError("the answer stopped in its middle", sent=True) from None
        return b"".join(parts) if size <= limit else None

    async def _refusal(self, response: Response) -> Problem:
        """What an answer with another status than a success means."""
        status = response.status
        if 300 <= status < 400:
            return Problem(words=f"HTTP {status} to {self._elsewhere(response)}, which is not followed", status=status)
        try:
            body = await self._body(response, ERROR_BODY)
        except FaultError:
            body = b""
        shown = self._veil.quote(body) if body is not None else f"more than {ERROR_BODY} bytes"
        after = response.header("retry-after").strip()
        return Problem(
            words=f"HTTP {status}: {shown}" if shown else f"HTTP {status}",
            status=status,
            frame=body if body and kind_of(response) == JSON else b"",
            retry_after=min(float(after[:9]), AFTER) if after.isascii() and after.isdigit() else None,
            challenge=printable(self._veil.quote(response.header("www-authenticate"), 1000)),
        )

    def _elsewhere(self, response: Response) -> str:
        try:
            target = self._address.join(URL(response.header("location"))).with_query(None).with_fragment(None)
            return excerpt(str(target.with_user(None)))
        except ValueError:
            return "nowhere"

    async def _drain(self, response: Response) -> None:
        """Reads what is left, for a short time, so that the connection can be used again."""
        size = 0
        try:
            async with asyncio.timeout(DRAIN):
                while not response.ended and size < ERROR_BODY and (chunk := await response.chunk()):
                    size += len(chunk)
        except (TimeoutError, FaultError):
            pass

    # Event streams

    async def _streamed(self, key: Id, response: Response, headers: Mapping[str, str]) -> Problem | None:
        stream = Stream()
        problem = await self._events(key, response, stream)
        if stream.answered:
            await self._drain(response)
            return None
        response.close()
        idle = failures = 0
        while self.resume and stream.last_id and failures < RESUME_FAILURES and idle < RESUMES:
            await anyio.sleep(stream.retry or RETRY)
            seen = stream.events
            try:
                found = await self._get(headers, stream.last_id)
            except FaultError as fault:
                problem, failures = Problem(words=fault.words, broken=True), failures + 1
                continue
            try:
                if found.status in _FINAL or found.status < 200 or 300 <= found.status < 400:
                    return _unresumed(await self._refusal(found))
                if found.status != 200 or kind_of(found) != EVENTS:
                    problem, failures = _unresumed(await self._refusal(found)), failures + 1
                    continue
                problem = await self._events(key, found, stream)
                if stream.answered:
                    await self._drain(found)
                    return None
            finally:
                found.close()
            failures = 0
            idle = idle + 1 if stream.events == seen else 0
        return problem or Problem(words="the event stream ended without a response")

    async def _events(self, key: Id | None, response: Response, stream: Stream) -> Problem | None:
        """Hands on the events of one answer until its end or the response. Returns why it broke off, if it did."""
        parser = EventStream(self._limits.line)
        try:
            while chunk := await response.chunk():
                for event in parser.feed(chunk):
                    stream.answered = self._event(key, event, stream) or stream.answered
                    if event.oversize and key is not None:
                        return Problem(words=f"an event has more than {self._limits.line} bytes")
                if stream.answered:
                    return None
        except FaultError as fault:
            return Problem(words=fault.words, broken=True)
        return None

    def _event(self, key: Id | None, event: Event, stream: Stream) -> bool:
        """Takes one event; tells whether it was the response."""
        stream.events += 1
        if event.id is not None:
            stream.last_id = event.id if event.id.isprintable() and len(event.id) <= self._limits.header else ""
        if event.retry is not None:
            stream.retry = min(max(event.retry / 1000, RETRY_LEAST), RETRY_MOST)
        if event.oversize or event.event != "message":
            self._dropped += 1
            return False
        return bool(event.data) and self._receive(key, event.data)

    async def _get(self, headers: Mapping[str, str], last_id: str) -> Response:
        merged = {**self._headers["GET"], **headers}
        if last_id:
            merged["last-event-id"] = last_id
        # Not kept: a server may send whoever looks at its address with GET to a page for people.
        return (await self._follow("GET", merged))[0]

    async def _listen(self, headers: Mapping[str, str]) -> None:
        stream = Stream()
        pause = self._limits.back_off
        while True:
            seen = stream.events
            try:
                problem = await self._listen_once(headers, stream)
            except FaultError as fault:
                _log.debug("upstream %s: no stream outside requests: %s", self._name, fault.words)
            else:
                if problem is not None:
                    break
            # A server that ends the stream again and again is asked ever more seldom.
            pause = self._limits.back_off if stream.events > seen else min(2 * pause, self._limits.back_off_most)
            await anyio.sleep(max(pause, stream.retry))
        self._listening = None
        self._receiver.ended(None, problem)

    async def _listen_once(self, headers: Mapping[str, str], stream: Stream) -> Problem | None:
        """Opens the stream and reads it to its end. Returns why it can never be had."""
        response = await self._get(headers, stream.last_id)
        try:
            if response.status == 200 and kind_of(response) == EVENTS:
                self._receiver.listening()
                await self._events(None, response, stream)
                return None
            if stream.last_id and response.status == 400:
                stream.last_id = ""  # it resumes nothing, but may still open a stream
                return None
            problem = await self._refusal(response)
            passing = response.status == 429 or (response.status >= 500 and response.status not in _FINAL)
            return None if passing else problem
        finally:
            response.close()


def kind_of(response: Response) -> str:
    """The media type of a body, in lower case."""
    kind = response.header("content-type")
    return kind if kind == JSON else kind.partition(";")[0].strip().lower()


def _unresumed(problem: Problem) -> Problem:
    """An answer broke off, and asking for its rest was refused: only a lost session or credential is still a status."""
    status = problem.status if problem.status in (401, 403, 404) else None
    return Problem(words=f"the answer broke off and cannot be resumed: {problem.words}", status=status)
