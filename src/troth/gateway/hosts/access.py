"""Who may speak to the gateway, and as whom: credentials, and the headers that browsers cannot forge.

A page in a browser can send requests to loopback, and by DNS rebinding under its own name. It cannot choose `Host` and
`Origin`, so both are checked before anything else, also where no credential is asked for.

Source: transports, security warning (servers must validate `Origin`, should bind to loopback, should authenticate);
RFC 6750 (bearer tokens).
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from troth.gateway.model import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from troth.gateway.settings import TokenSettings

ANONYMOUS: Final = Principal("anonymous")
"""Everybody on loopback, where no credential is asked for."""

REMEMBERED: Final = 64
"""Values of `Host` and `Origin` whose judgement is kept. Real hosts use one or two."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WILDCARD = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


class Access:
    """Judges the head of a request. Holds digests under a key of this process, never tokens.

    Args:
        tokens: Credentials of hosts, each a principal of its own.
        bound: The address that the gateway listens on.
        allowed_hosts: Further values of `Host`, with or without port; `*` for any.
        allowed_origins: Further values of `Origin`; `*` for any.
        no_auth: Take requests without credential as the anonymous principal. Only meant for loopback.
        operator: The credential that may read the status; None for nobody.
    """

    def __init__(
        self,
        tokens: Iterable[TokenSettings] = (),
        *,
        bound: str = "127.0.0.1",
        allowed_hosts: Iterable[str] = (),
        allowed_origins: Iterable[str] = (),
        no_auth: bool = False,
        operator: str | None = None,
    ) -> None:
        self._key = secrets.token_bytes(32)
        self.no_auth = no_auth
        self._operator = None if operator is None else self._digest(operator.encode())
        self._any_address = bound in _WILDCARD
        self._hosts = frozenset(host.lower() for host in (*allowed_hosts, bound, *_LOOPBACK) if host)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in allowed_origins)
        self._known_hosts: dict[bytes, bool] = {}
        self._known_origins: dict[bytes, bool] = {}
        self._principals: dict[bytes, Principal] = {}
        self.revoked: Callable[[Collection[str]], None] = _nobody
        """Called with the names of principals of which a credential is no longer good."""
        self.replace(tokens)

    def replace(self, tokens: Iterable[TokenSettings]) -> None:
        """Takes other credentials from now on; what was opened with one that is gone is ended."""
        old = self._principals
        self._principals = {
            self._digest(token.token.encode()): Principal(token.name, token.profile) for token in tokens
        }
        if gone := {principal.name for digest, principal in old.items() if digest not in self._principals}:
            self.revoked(gone)

    def host(self, value: bytes | None) -> bool:
        """Whether a request with this `Host` header is for us."""
        if value is None:
            return False
        known = self._known_hosts.get(value)
        return _remember(self._known_hosts, value, self._judge_host(value)) if known is None else known

    def origin(self, value: bytes | None) -> bool:
        """Whether a request with this `Origin` header may be answered. Programs other than browsers send none."""
        if value is None:
            return True
        known = self._known_origins.get(value)
        return _remember(self._known_origins, value, self._judge_origin(value)) if known is None else known

    def principal(self, authorization: bytes | None) -> Principal | None:
        """Who sends this `Authorization` header; None for nobody known.

        The look-up is by a keyed digest, so its time tells nothing about the tokens.
        """
        token = _bearer(authorization)
        if token is not None and (found := self._principals.get(self._digest(token))) is not None:
            return found
        # A stranger's token is no reason to shut out a host where everybody is let in anyway, but where there are
        # names, a wrong one must not become the anonymous one in silence.
        if self.no_auth and (authorization is None or not self._principals):
            return ANONYMOUS
        return None

    def operator(self, authorization: bytes | None) -> bool:
        """Whether this `Authorization` header is the operator's."""
        token = _bearer(authorization)
        if token is None or self._operator is None:
            return False
        return secrets.compare_digest(self._digest(token), self._operator)

    def _digest(self, token: bytes) -> bytes:
        return blake2b(token, key=self._key, digest_size=32).digest()

    def _judge_host(self, value: bytes) -> bool:
        host = value.decode("latin-1").lower()
        name = _name(host)
        if "*" in self._hosts or host in self._hosts or name in self._hosts:
            return True
        # Rebinding needs a name: where every address of the machine is bound, an address stands for itself.
        return self._any_address and _is_address(name)

    def _judge_origin(self, value: bytes) -> bool:
        origin = value.decode("latin-1").lower().rstrip("/")
        if "*" in self._origins or origin in self._origins:
            return True
        try:
            split = urlsplit(origin)
            return split.scheme in ("http", "https") and split.hostname in _LOOPBACK
        except ValueError:
            return False


def _nobody(names: Collection[str]) -> None:
    """Until somebody listens."""


def _remember(known: dict[bytes, bool], value: bytes, judged: bool) -> bool:
    if len(known) >= REMEMBERED:
        known.clear()
    known[value] = judged
    return judged


def _bearer(authorization: bytes | None) -> bytes | None:
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else None


def _name(host: str) -> str:
    """The name or address in a `Host` header, without port and brackets; empty if what follows it is no port."""
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        colon, port = rest[:1], rest[1:]
    elif host.count(":") > 1:
        return host
    else:
        name, colon, port = host.partition(":")
    return name if colon in ("", ":") and (not port or (port.isascii() and port.isdigit())) else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
