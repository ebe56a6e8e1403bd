"""Puts the gateway together and runs it until a signal comes, or standard input ends."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from troth.bridge.asks import BROKER
from troth.gateway.broker import Broker
from troth.gateway.config.find import config_folder, state_folder
from troth.gateway.config.tokens import load_with_tokens
from troth.gateway.crew import Crew
from troth.gateway.front import MiddleFront
from troth.gateway.gateway import Gateway
from troth.gateway.hosts import ANONYMOUS, Access, HttpHosts, ListenError, serve_http
from troth.gateway.limits import Limits
from troth.gateway.model import Principal
from troth.gateway.presence import Presence
from troth.gateway.reload import Watch, watch
from troth.gateway.report import report
from troth.gateway.run import Run, announce, withdraw
from troth.gateway.seal import Keys, Seal
from troth.gateway.settings import GatewaySettings
from troth.gateway.state import State, state_path
from troth.gateway.tasks import Tasks
from troth.gateway.tasks.resuming import Resuming
from troth.tasks import SqliteStore, StoreError

if TYPE_CHECKING:
    from troth.gateway.config import Faults
    from troth.gateway.settings import ServeOptions

_log = logging.getLogger(__name__)

COLLECT: Final = (10_000, 10, 10)
"""When cycles are looked for: by Python's own measure (700 new objects) that takes an eighth of every relayed call."""

ANNOUNCE: Final = 5.0
"""Seconds after which a gateway that could not write where it is tries again: a full disk may be full for a while."""

STDIO: Final = Principal("stdio")
"""The host on our own standard input and output."""


def run(settings: GatewaySettings, options: ServeOptions) -> int:
    """Serves on a loop of its own, in a process that does nothing else; see `serve`."""
    gc.freeze()
    gc.set_threshold(*COLLECT)
    options_of_loop = {"use_uvloop": sys.platform != "win32"}
    return anyio.run(serve, settings, options, backend="asyncio", backend_options=options_of_loop)


async def serve(settings: GatewaySettings, options: ServeOptions) -> int:
    """Serves until it is told to stop.

    Args:
        settings: The configuration.
        options: The command line.

    Returns:
        The exit status: 0 after a signal or the end of input, 1 if nothing can be served.
    """
    form = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(stream=sys.stderr, level=options.log_level.upper(), format=form)
    running = _Running(settings, options)
    try:
        return await running.until_stopped()
    finally:
        await running.end()


class _Running:
    """One run of a gateway."""

    def __init__(self, settings: GatewaySettings, options: ServeOptions) -> None:
        self.options = options
        self.limits = Limits()
        self.crew = Crew()
        self.started = time.time()
        self.folder = state_folder(os.environ, Path.home())
        path = settings.path
        self.state = State.load(state_path(self.folder, path) if path is not None else None)
        if self.state.problem:
            _log.warning("what earlier runs remembered is lost: %s", self.state.problem)
        self.gateway = Gateway(settings, self.state, self.crew, self.limits, self._keys(settings))
        self.gateway.several = self._several
        self.front = MiddleFront(self.gateway)
        self.presence = Presence(self.folder / "runs")
        self.store: SqliteStore | None = None
        self.faults: tuple[str, ...] = ()
        self.stopping = anyio.Event()
        self.taking = anyio.Lock()
        self.access: Access | None = None
        self.hosts: HttpHosts | None = None
        self.url = ""
        self.watch: Watch | None = None

    async def until_stopped(self) -> int:
        """Serves; returns the exit status."""
        # The broker comes first: what it takes is declared to the upstreams of tasks that go on.
        await self._broker(self.gateway.settings)
        await self._tasks()
        self._watch()
        with anyio.open_signal_receiver(*_SIGNALS) as signals:
            self.crew.spawn(self._heed(signals), "signals")
            return await (self._stdio() if self.options.stdio else self._http())

    async def end(self) -> None:
        """Ends what is left, each part within its own limits."""
        with anyio.CancelScope(shield=True):
            await self.gateway.stop()
            if self.gateway.broker is not None:
                await self.gateway.broker.close()
            await self.crew.close()
            if self.store is not None:
                await self.store.close()
            self.presence.close()
            withdraw(self.folder, os.getpid())

    def _keys(self, settings: GatewaySettings) -> Keys:
        """Keys for the states of calls: the operator's, or those of earlier runs, so that these are still read."""
        if settings.seal_keys:
            keys = Keys.given(settings.seal_keys)
        elif self.state.path is not None:
            keys = Keys.kept(self.state.path.with_name("keys.json"), self.started)
        else:
            keys = Keys.made()
        if isinstance(keys, str):
            _log.warning("calls that wait for answers cannot be told of after a restart: %s", keys)
            return Keys.made()
        return keys

    async def _tasks(self) -> None:
        """Opens the tasks that earlier runs left, and keeps those of this one."""
        path = self.folder / "tasks.db"
        self.store = SqliteStore(path)
        self.gateway.tasks = Tasks(self.store, self.crew, self.limits, self.presence.name)
        if path.exists():
            resuming = Resuming(self.gateway, self._principals)
            for task in await self.gateway.tasks.start(self.presence.alive, resuming.takes):
                resuming.go_on(task)

    def _principals(self) -> list[Principal]:
        """Everybody who may speak to this run."""
        if self.options.stdio:
            return [STDIO]
        tokens = (*self.options.tokens, *self.gateway.settings.tokens)
        return [ANONYMOUS, *(Principal(token.name, token.profile) for token in tokens)]

    def _several(self) -> bool:
        """Whether more than one principal may speak to this run: anybody without a credential is one."""
        options = self.options
        return not options.stdio and options.no_auth + len(options.tokens) + len(self.gateway.settings.tokens) > 1

    async def _broker(self, settings: GatewaySettings) -> None:
        """Opens the broker where some upstream may use it. What earlier runs left open is settled."""
        if not any(BROKER in upstream.ask for upstream in settings.upstreams):
            return
        if self.gateway.broker is None:
            self.gateway.broker = await self._opened()
        self.gateway.broker.command = settings.answer_command
        if self.hosts is not None:
            self.hosts.broker = self.gateway.broker

    async def _opened(self) -> Broker:
        """A broker, which is ready if its file can be used."""
        path = self.folder / "questions.db"
        broker = Broker(path, self.limits, run=self.presence.name, clock=time.time, crew=self.crew)
        with suppress(StoreError):
            await broker.start(self.presence.alive)
        return broker

    async def _http(self) -> int:
        options, settings = self.options, self.gateway.settings
        self.access = Access(
            (*options.tokens, *settings.tokens),
            bound=options.host,
            allowed_hosts=settings.allowed_hosts,
            allowed_origins=settings.allowed_origins,
            no_auth=options.no_auth,
            operator=options.operator or None,
        )
        hosts = self.hosts = HttpHosts(
            self.front, self.access, self.limits, self.crew, self._status, broker=self.gateway.broker
        )
        try:
            server = await serve_http(hosts, options.host, options.port, self.limits, self.crew)
        except ListenError as error:
            print(f"Error: {error}", file=sys.stderr)  # noqa: T201
            return 1
        name = f"[{server.host}]" if ":" in server.host else server.host
        self.url = f"http://{name}:{server.port}"
        self._announce()
        self._start()
        print(f"ready {self.url}/mcp", file=sys.stderr, flush=True)  # noqa: T201
        await self.stopping.wait()
        self.front.stop()
        await server.stop()
        return 0

    async def _stdio(self) -> int:
        from troth.gateway.hosts.stdio import serve_stdio

        self._announce()
        self.gateway.fleet(STDIO)
        async with anyio.create_task_group() as tasks:

            async def end() -> None:
                await self.stopping.wait()
                self.front.stop()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end)
            await serve_stdio(self.front, 0, 1, self.limits, self.crew)
            tasks.cancel_scope.cancel()
        return 0

    def _start(self) -> None:
        """Starts the upstreams early where it is clear for whom; else when somebody comes."""
        tokens = (*self.options.tokens, *self.gateway.settings.tokens)
        if self.options.no_auth:
            self.gateway.fleet(ANONYMOUS)
        elif len(tokens) == 1:
            self.gateway.fleet(Principal(tokens[0].name, tokens[0].profile))

    def _announce(self) -> None:
        run = Run(
            pid=os.getpid(),
            url=self.url,
            operator=self.options.operator,
            config=self.gateway.settings.path or "",
            started=self.started,
        )
        if problem := announce(self.folder, run):
            _log.warning("the status command does not find this gateway yet: %s", problem)
            self.crew.spawn(self._announce_later(run), "announcement")

    async def _announce_later(self, run: Run) -> None:
        problem = "not tried again yet"
        while problem:
            await anyio.sleep(ANNOUNCE)
            problem = announce(self.folder, run)
        _log.warning("the status command finds this gateway now")

    def _status(self) -> object:
        from troth._version import version

        made = report(
            self.gateway,
            self.front,
            url=f"{self.url}/mcp" if self.url else "",
            started=self.started,
            version=version,
            faults=self.faults,
        )
        return msgspec.to_builtins(made)

    # Reload

    def _watch(self) -> None:
        path = self.gateway.settings.path
        if path is None:
            return
        tokens = config_folder(os.environ, Path.home()) / "tokens.json"
        self.watch = watch(
            [path, tokens], lambda: load_with_tokens(path, os.environ, tokens), self._reloaded, self.crew
        )

    def _reloaded(self, found: GatewaySettings | Faults) -> None:
        if not isinstance(found, GatewaySettings):
            self.faults = tuple(str(fault) for fault in found.faults)
            for fault in self.faults:
                _log.error("the changed configuration is not used: %s", fault)
            return
        self.faults = ()
        self.crew.spawn(self._take(found), "changed configuration")

    async def _take(self, settings: GatewaySettings) -> None:
        """Uses other settings. The broker comes first: what it takes is declared to upstreams."""
        async with self.taking:
            await self._broker(settings)
            if settings.seal_keys != self.gateway.settings.seal_keys:
                self.gateway.seal = Seal(self._keys(settings))
            self.gateway.reload(settings)
            if self.access is not None:
                tokens = (*self.options.tokens, *settings.tokens)
                self.access.replace(tokens)
                self.gateway.retain({ANONYMOUS.name, *(token.name for token in tokens)})

    async def _heed(self, signals: object) -> None:
        async for number in signals:  # type: ignore[attr-defined]
            if number == getattr(signal, "SIGHUP", None):
                if self.watch is not None:
                    self.watch.now()
            else:
                self.stopping.set()


_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
