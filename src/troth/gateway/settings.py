"""What the operator asked for, as values. `config` makes them from files; all else of the gateway reads them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.gating import Need


class Transport(StrEnum):
    """How an upstream is reached."""

    STDIO = "stdio"
    HTTP = "http"
    """Streamable HTTP of any revision; falls back to `SSE` where a server knows only that."""
    SSE = "sse"
    """HTTP+SSE of 2024-11-05."""


class EraChoice(StrEnum):
    """Which era to speak to an upstream."""

    AUTO = "auto"
    LEGACY = "legacy"
    MODERN = "modern"


class Share(StrEnum):
    """Who may use one session of an upstream together."""

    AUTO = "auto"
    """Hosts of one principal, as long as no question needs a single host."""
    ALWAYS = "always"
    """Everybody: the operator's statement that the server keeps nothing per client."""
    NEVER = "never"
    """Every host has a session of its own."""


class Policy(StrEnum):
    """Whether a family of primitives is declared to hosts."""

    AUTO = "auto"
    """Where an upstream declares it, or did when it was last seen."""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """One server behind the gateway.

    Attributes:
        name: Name in the configuration.
        transport: How it is reached.
        command: Program and arguments (stdio).
        env: Variables that its process gets beside the few harmless ones that every process needs.
        cwd: Folder that its process starts in; None for the gateway's own.
        url: Address (HTTP).
        headers: Headers of every request to it, credentials among them (HTTP).
        era: Which era to speak; AUTO probes.
        prefix: Text before names and URIs; empty for none; None for the rule of `names`.
        allow: Patterns (globs) of tools that hosts see, by the upstream's own names.
        deny: Patterns of tools that they do not see, also of allowed ones.
        rename: The upstream's own name of a tool -> the name to show (before the prefix).
        describe: The upstream's own name of a tool -> the description to show.
        requires: The upstream's own name of a tool or prompt, or URI of a resource or template -> what hosts must have
            declared to see and use it, beside what the upstream says in ``_meta``.
        share: Who may use one session together.
        max_sessions: Most sessions (processes) at once.
        start_timeout: Seconds that a start may take until its first answer.
        call_timeout: Seconds that a call may take without any sign of life; None for no limit.
        poll: Seconds between two looks at the lists of an upstream that announces no changes; None for never.
        relay_extensions: Keys of extensions that pass between hosts and the server.
        relay_experimental: Experimental keys that do.
        ask: Who may answer its questions: ``host``, ``broker``.
        roots: Folders (file URIs) that it hears of where its host has none to tell; None to refuse then.
        ask_timeout: Seconds in which its questions are answered.
        where: File and place in it, for messages.
    """

    name: str
    transport: Transport
    command: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    era: EraChoice = EraChoice.AUTO
    prefix: str | None = None
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    describe: Mapping[str, str] = field(default_factory=dict[str, str])
    requires: Mapping[str, Need] = field(default_factory=dict[str, "Need"])
    share: Share = Share.AUTO
    max_sessions: int = 4
    start_timeout: float = 60.0
    call_timeout: float | None = None
    poll: float | None = None
    relay_extensions: tuple[str, ...] = ()
    relay_experimental: tuple[str, ...] = ()
    ask: tuple[str, ...] = ("host",)
    roots: tuple[str, ...] | None = None
    ask_timeout: float = 50.0
    where: str = ""


SHOWN = frozenset({"allow", "deny", "rename", "describe", "requires", "prefix", "where"})
"""Fields of an upstream that change what hosts see, and nothing of the conversation with it."""


def spoken(settings: UpstreamSettings) -> UpstreamSettings:
    """What of the settings concerns the conversation, not what hosts see of it."""
    plain = UpstreamSettings(name="", transport=settings.transport)
    return replace(settings, **{name: getattr(plain, name) for name in SHOWN})


_RESERVED = frozenset(
    {
        *("accept", "accept-encoding", "content-encoding", "content-length", "content-type", "last-event-id"),
        *("connection", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)


def reserved(header: str) -> bool:
    """Whether a header cannot be configured, since it belongs to the transport; so do all of MCP's own."""
    name = header.lower()
    return name in _RESERVED or name.startswith("mcp-")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """One credential of a host: a principal of its own.

    Attributes:
        name: Name of the principal.
        token: What the host sends as bearer.
        profile: Profile of the register that the host is treated by; empty for none.
    """

    name: str
    token: str = field(repr=False)
    profile: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Everything that a configuration says.

    Attributes:
        upstreams: The servers, in the file's order.
        tokens: Credentials of hosts.
        policies: Policy per family (``tools``, ``prompts``, ``resources``).
        profiles: Policies per host profile: id of the profile -> family -> policy.
        allow_when_not_declared: Whether legacy hosts that send no capabilities object see what needs capabilities.
        page_size: Most items of one page of a list; None puts all on one.
        startup_wait: Seconds that a host's first request waits for upstreams that were never seen.
        allowed_hosts: Values of the ``Host`` header that are taken beside those of the bound address.
        allowed_origins: Values of the ``Origin`` header that are taken beside loopback ones.
        answer_command: Program and arguments that answer questions for people; empty for nobody but people.
        seal_keys: The key that seals states of calls, and the one before; empty for keys of our own.
        path: The file; None where there is none.
        notes: What the file says that has no effect here, one sentence each.
    """

    upstreams: tuple[UpstreamSettings, ...] = ()
    tokens: tuple[TokenSettings, ...] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict[str, Policy])
    profiles: Mapping[str, Mapping[str, Policy]] = field(default_factory=dict[str, "Mapping[str, Policy]"])
    allow_when_not_declared: bool = False
    page_size: int | None = None
    startup_wait: float = 5.0
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    answer_command: tuple[str, ...] = ()
    seal_keys: tuple[str, ...] = field(default=(), repr=False)
    path: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What the command line of ``serve`` says beside the configuration.

    Attributes:
        host: Address to bind.
        port: Port to bind; 0 picks a free one.
        stdio: Serve one host on standard input and output instead of HTTP.
        no_auth: Take hosts without a credential (loopback only).
        tokens: Credentials beside those of the configuration: from the option, the environment, or made at the start.
        operator: The token by which the operator's own commands read the status.
        log_level: Least severity of log lines on standard error: ``debug``, ``info``, ``warning``, ``error``.
    """

    host: str = "127.0.0.1"
    port: int = 8300
    stdio: bool = False
    no_auth: bool = False
    tokens: tuple[TokenSettings, ...] = ()
    operator: str = field(default="", repr=False)
    log_level: str = "warning"
