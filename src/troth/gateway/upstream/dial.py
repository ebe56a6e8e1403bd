"""Opens a conversation: probes the era of an upstream, shakes hands, and falls back as far as the specification goes.

Rule 18 of the gateway: modern wherever an upstream offers it. A process that ends early or stays silent gets a fresh
one for ``initialize``; the first goes on meanwhile, so that a slow starter is not taken for an old server.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from troth.bridge import Bad, Frame, Kind, Lost, Outgoing, ask, opened, peek
from troth.bridge.asks import client_capabilities
from troth.gateway.settings import EraChoice, Transport
from troth.gateway.upstream.envelope import CLIENT_INFO, Envelope
from troth.gateway.upstream.era import Said, Verdict, decoded, facts_of, judge
from troth.gateway.upstream.waiting import Refused, Waiter
from troth.gateway.upstream.words import told
from troth.register import Era, register
from troth.wire.errors import LinkError
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from troth.gateway.settings import UpstreamSettings
    from troth.gateway.upstream.conversation import Talk

PROBE: Final = 2.0
"""Seconds that a process which wrote something gets to answer ``server/discover`` before a fresh one is tried too."""
PROBE_SILENT: Final = 8.0
"""The same for a process that wrote nothing at all, or a server over HTTP: it is slow rather than old."""
KEPT: Final = 86_400.0
"""Seconds after which an upstream that was found to be old is probed again: servers are updated."""
NO_SUCH_TRANSPORT: Final = frozenset({400, 404, 405, 406, 415})
"""HTTP statuses of a POST that a server of HTTP+SSE gives. Source: 2025-03-26/basic/transports, backwards
compatibility."""


class DownError(Exception):
    """No conversation could be opened.

    Attributes:
        words: Why, fit to print.
        status: HTTP status of the refusal; 0 for none.
        evidence: Whether it says anything of the era: a server that was not reached says nothing.
        after: Seconds that the server asks to wait; 0 if it does not say.
    """

    def __init__(self, words: str, status: int = 0, *, evidence: bool = True, after: float = 0.0) -> None:
        super().__init__(words)
        self.after = after
        self.words = words
        self.status = status
        self.evidence = evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to get to an upstream.

    Attributes:
        settings: The upstream.
        open: Opens a link by a transport and returns the talk over it, which begins in an envelope. Raises
            `troth.wire.errors.LinkError`.
        drop: Closes a talk that lost, in the background.
        memory: What was found before: name and digest of an upstream -> era, transport, and when.
    """

    settings: UpstreamSettings
    open: Callable[[Transport, Envelope], Awaitable[Talk]]
    drop: Callable[[Talk], None]
    memory: MutableMapping[str, str]

    @property
    def key(self) -> str:
        """Where the memory has this upstream: another command or address is another one."""
        settings = self.settings
        words = "\0".join((settings.transport, *settings.command, settings.cwd or "", settings.url))
        return f"{settings.name}:{blake2b(words.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}"

    def known(self) -> Transport | None:
        """The transport of an upstream that was found to be old not long ago; None for all others."""
        era, _, rest = self.memory.get(self.key, "").partition(" ")
        transport, _, stamp = rest.partition(" ")
        if era != Era.LEGACY or transport not in set(Transport) or not stamp.isdecimal():
            return None
        return Transport(transport) if time.time() - int(stamp) < KEPT else None

    def remember(self, era: Era, transport: Transport) -> None:
        """Keeps what was found."""
        self.memory[self.key] = f"{era} {transport} {int(time.time())}"

    def forget(self) -> None:
        """What was found before does not hold any more."""
        self.memory.pop(self.key, None)


async def dial(way: Way) -> Talk:
    """Opens a conversation with an upstream.

    Returns:
        A talk that is settled in a revision; a legacy one is initialized.

    Raises:
        DownError: It cannot be reached, or no revision is common.
    """
    settings = way.settings
    try:
        if settings.transport is Transport.SSE:
            return await _legacy(way, Transport.SSE)
        if settings.era is EraChoice.LEGACY:
            return await _legacy(way, settings.transport)
        known = way.known() if settings.era is EraChoice.AUTO else None
        if known is not None:
            try:
                return await _legacy(way, known)
            except DownError as error:
                if not error.evidence:
                    raise
                way.forget()
        return await (_probe_process(way) if settings.transport is Transport.STDIO else _probe_http(way))
    except LinkError as error:
        raise DownError(f"{error.where}: {error.message}") from error


async def again(way: Way, talk: Talk) -> Talk:
    """Opens a new session of the kind that `talk` had, without a probe.

    Raises:
        DownError: See `dial`.
    """
    try:
        return await _legacy(way, Transport(talk.link.transport))
    except LinkError as error:
        raise DownError(f"{error.where}: {error.message}") from error


def _modern() -> Envelope:
    return Envelope(register().newest(Era.MODERN))


def _old() -> Envelope:
    return Envelope(register().newest(Era.LEGACY), agreed=False)


def _settled(way: Way, talk: Talk, verdict: Verdict) -> Talk:
    talk.settle(Envelope(verdict.revision or talk.revision), verdict.facts)
    way.remember(Era.MODERN, Transport(talk.link.transport))
    return talk


async def _legacy(way: Way, transport: Transport) -> Talk:
    """A handshake on a link of its own; over HTTP the oldest transport is tried last."""
    talk = await way.open(transport, _old())
    try:
        await _shake(way, talk, way.settings.start_timeout)
    except DownError as error:
        way.drop(talk)
        if transport is Transport.HTTP and error.status in NO_SUCH_TRANSPORT:
            return await _oldest(way, error)
        raise
    except BaseException:
        way.drop(talk)
        raise
    return talk


async def _oldest(way: Way, first: DownError) -> Talk:
    """HTTP+SSE, where Streamable HTTP is not known. What failed first is what is told if this fails too."""
    try:
        talk = await way.open(Transport.SSE, _old())
    except LinkError:
        raise first from None
    try:
        await _shake(way, talk, min(PROBE_SILENT, way.settings.start_timeout))
    except DownError:
        way.drop(talk)
        raise first from None
    except BaseException:
        way.drop(talk)
        raise
    return talk


async def _probe_http(way: Way) -> Talk:
    talk = await way.open(Transport.HTTP, _modern())
    kept = False
    try:
        verdict = await _discover(talk, min(PROBE_SILENT, way.settings.start_timeout))
        if verdict.said is Said.MODERN:
            kept = True
            return _settled(way, talk, verdict)
        _refuse(way, verdict)
        try:
            await _shake(way, talk, way.settings.start_timeout)
        except DownError as error:
            if verdict.said is Said.UNCLEAR and verdict.facts.capabilities is not None:
                kept = True
                talk.speak(_modern())
                return _settled(way, talk, verdict)
            if error.status in NO_SUCH_TRANSPORT:
                return await _oldest(way, error)
            raise _both(verdict, error) from None
        kept = True
        return talk
    finally:
        if not kept:
            way.drop(talk)


def _refuse(way: Way, verdict: Verdict) -> None:
    """Gives up where no handshake can help.

    Raises:
        DownError: Always where the verdict or the operator rules the legacy era out.
    """
    if verdict.said in (Said.NOTHING, Said.REFUSED) or way.settings.era is EraChoice.MODERN:
        raise DownError(verdict.words, after=verdict.after)


def _both(verdict: Verdict, error: DownError) -> DownError:
    """Both eras failed: what each said."""
    words = error.words if error.words == verdict.words else f"{error.words}; before that, {verdict.words}"
    return DownError(words, error.status)


async def _discover(talk: Talk, seconds: float) -> Verdict:
    """Asks for the era, at another revision if the server wants that; silence is an answer too."""
    deadline = _now() + seconds
    while True:
        waiter = _start_discover(talk)
        verdict = await _verdict(talk, waiter, deadline - _now())
        if verdict is None:
            return Verdict(Said.LEGACY, f"server/discover got no answer in {seconds:g} s")
        if verdict.said is not Said.AGAIN:
            return verdict
        talk.speak(Envelope(verdict.revision))


def _start_discover(talk: Talk) -> Waiter:
    waiter = Waiter(_nobody)
    waiter.number = talk.start(Outgoing(frame=ask("server/discover", {})), waiter)
    return waiter


async def _verdict(talk: Talk, waiter: Waiter, seconds: float) -> Verdict | None:
    """What the answer says; None if none comes in time, which gives the request up."""
    await asyncio.wait((waiter.outcome,), timeout=max(seconds, 0))
    if waiter.outcome.done():
        return judge(waiter.outcome.result(), talk.revision)
    talk.cancel(waiter.number, "no answer")
    return None


def _nobody(_frame: Frame) -> None:
    """What comes beside the answer to a probe is for nobody."""


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _shake(way: Way, talk: Talk, seconds: float) -> None:
    """``initialize`` and ``notifications/initialized`` on a link that may have been probed before.

    Raises:
        DownError: The server does not shake hands.
    """
    waiter = _start_shake(talk)
    await asyncio.wait((waiter.outcome,), timeout=seconds)
    if not waiter.outcome.done():
        talk.cancel(waiter.number, "no answer")
        raise DownError(f"initialize timed out after {seconds:g} s")
    await _shaken(way, talk, waiter.outcome.result())


def _start_shake(talk: Talk) -> Waiter:
    talk.speak(_old())
    params = {
        "protocolVersion": talk.revision,
        "capabilities": client_capabilities(talk.asks, talk.revision),
        "clientInfo": CLIENT_INFO,
    }
    waiter = Waiter(_nobody)
    waiter.number = talk.start(Outgoing(frame=ask("initialize", params)), waiter)
    return waiter


async def _shaken(way: Way, talk: Talk, outcome: Frame | Lost) -> None:
    """Reads the answer to ``initialize`` and ends the handshake.

    Raises:
        DownError: It is no result, or names a revision that no register knows.
    """
    if isinstance(outcome, Lost):
        evidence = judge(outcome, "").said is not Said.NOTHING
        if isinstance(outcome, Refused):
            raise DownError(outcome.words, outcome.status, evidence=evidence, after=outcome.after)
        raise DownError(outcome.words, evidence=evidence)
    frame = opened(outcome)
    found = frame if isinstance(frame, Bad) else peek(frame, "protocolVersion", "serverInfo")
    if isinstance(frame, Bad) or isinstance(found, Bad):
        raise DownError(f"initialize got a malformed answer: {found.reason if isinstance(found, Bad) else ''}")
    if frame.kind is Kind.ERROR:
        raise DownError(f"initialize got {told(frame)}", 400 if talk.link.transport == "http" else 0)
    revision = found.get("protocolVersion", "")
    if revision not in register().eras[Era.LEGACY]:
        known = ", ".join(register().eras[Era.LEGACY])
        raise DownError(f"initialize offers revision {excerpt(revision, 40)!r}, which is none of {known}")
    talk.settle(Envelope(revision), facts_of(frame, decoded(found.get("serverInfo"))))
    if problem := await talk.assure("notifications/initialized"):
        raise DownError(f"notifications/initialized: {problem.words}", problem.status or 0)
    talk.listen()
    way.remember(Era.LEGACY, Transport(talk.link.transport))


async def _probe_process(way: Way) -> Talk:
    race = _Race(way)
    try:
        return await race.run()
    finally:
        race.clear()


class _Race:
    """A process that is asked for its era, and, where that leads nowhere, a fresh one that is shaken hands with."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.deadline = _now() + way.settings.start_timeout
        self.talks: list[Talk] = []
        self.winner: Talk | None = None

    async def run(self) -> Talk:
        self.winner = await self._run()
        return self.winner

    def clear(self) -> None:
        """Ends the processes that lost."""
        for talk in self.talks:
            if talk is not self.winner:
                self.way.drop(talk)

    async def _open(self, envelope: Envelope) -> Talk:
        talk = await self.way.open(Transport.STDIO, envelope)
        self.talks.append(talk)
        return talk

    async def _run(self) -> Talk:
        first = await self._open(_modern())
        asked = _start_discover(first)
        pinned = self.way.settings.era is EraChoice.MODERN
        await self._patience(first, asked, pinned=pinned)
        if asked.outcome.done():
            return await self._decide(first, asked, None)
        if pinned:
            raise DownError(f"server/discover timed out after {self.way.settings.start_timeout:g} s")
        fresh = await self._open(_old())
        return await self._decide(first, asked, (fresh, _start_shake(fresh)))

    async def _patience(self, first: Talk, asked: Waiter, *, pinned: bool) -> None:
        """Waits for an answer, longer if the process has said nothing at all yet."""
        begun = _now()
        while not asked.outcome.done():
            most = PROBE if first.talked else PROBE_SILENT
            rest = (self.deadline if pinned else min(begun + most, self.deadline)) - _now()
            if rest <= 0:
                return
            await asyncio.wait((asked.outcome,), timeout=min(rest, PROBE))

    async def _decide(self, first: Talk, asked: Waiter, second: tuple[Talk, Waiter] | None) -> Talk:
        """Takes whichever process comes to an end first: a modern answer, or a handshake that succeeds."""
        failed: DownError | None = None
        verdict: Verdict | None = None
        while True:
            if verdict is None and asked.outcome.done():
                verdict = judge(asked.outcome.result(), first.revision)
                if verdict.said is Said.AGAIN:
                    first.speak(Envelope(verdict.revision))
                    asked, verdict = _start_discover(first), None
                elif verdict.said is Said.MODERN:
                    return _settled(self.way, first, verdict)
                elif second is None:
                    return await self._fall_back(first, verdict)
            if second is not None and second[1].outcome.done():
                talk, shaken = second
                second = None
                try:
                    await _shaken(self.way, talk, shaken.outcome.result())
                except DownError as error:
                    failed = error
                    if verdict is not None and not first.alive:
                        raise _both(verdict, error) from None
                    if verdict is not None:
                        return await self._fall_back(first, verdict)
                else:
                    return talk
            waits = [one.outcome for one in (asked, second[1] if second else None) if one and not one.outcome.done()]
            if not waits or self.deadline <= _now():
                raise failed or DownError(
                    f"no answer in {self.way.settings.start_timeout:g} s, neither to server/discover nor to initialize"
                )
            await asyncio.wait(waits, timeout=self.deadline - _now(), return_when=asyncio.FIRST_COMPLETED)

    async def _fall_back(self, first: Talk, verdict: Verdict) -> Talk:
        """The process is no modern server: shakes hands with it if it lives, else with a fresh one."""
        ended = not first.alive
        if verdict.said is Said.REFUSED or self.way.settings.era is EraChoice.MODERN:
            raise DownError(verdict.words)
        try:
            talk = await self._open(_old()) if ended else first
            await _shake(self.way, talk, max(self.deadline - _now(), 0.1))
        except DownError as error:
            if not ended and not first.alive:
                # It died of the handshake after a probe; one that was never probed may not.
                fresh = await self._open(_old())
                await _shake(self.way, fresh, max(self.deadline - _now(), 0.1))
                return fresh
            return self._left(first, verdict, error)
        return talk

    def _left(self, first: Talk, verdict: Verdict, error: DownError) -> Talk:
        """What is left when the handshake failed: a server that answered ``server/discover`` all the same."""
        if verdict.said is Said.UNCLEAR and first.alive and verdict.facts.capabilities is not None:
            first.speak(_modern())
            return _settled(self.way, first, verdict)
        raise error if verdict.said is Said.NOTHING else _both(verdict, error)
