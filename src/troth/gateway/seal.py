"""The `requestState` that hosts carry for us: sealed, so that they can neither read nor change nor lend it.

It is text of authenticated encryption (AES-256-GCM) over `Sealed`. An upstream's own state lies inside and comes back
byte for byte; a host never sees it. Keys have ids and one predecessor, so that a new key loses no call.

Source: 2026-07-28, multi round-trip requests, on what a server must check of ``requestState``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from troth.bridge import BAD_PARAMS, Bad
from troth.bridge.errors import INTERNAL
from troth.bridge.exchange_model import Expected
from troth.bridge.questions import QuestionKind  # noqa: TC001 - the reader of `Sealed` is made from its types
from troth.gateway.config.keys import SHORTEST_KEY
from troth.gateway.private import read_private, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from troth.bridge.exchange_model import Round

LARGEST: Final = 1024 * 1024
"""Characters of the longest sealed text. It must fit into a host's request together with the answers."""
KEY_AGE: Final = 30 * 24 * 3600.0
"""Seconds after which a stored key gets a successor; AES-GCM with random nonces seals 2**32 messages safely."""

_FORM: Final = "t1"
_KEY: Final = 32
_NONCE: Final = 12
_ID: Final = 8

TAMPERED: Final = Bad(BAD_PARAMS, "requestState: tampered: it was changed on its way, or is none of ours")
UNKNOWN_KEY: Final = Bad(
    BAD_PARAMS, "requestState: foreign: it was sealed by another gateway, or by this one with a key that is gone"
)
FOREIGN: Final = Bad(BAD_PARAMS, "requestState: foreign: it was given to somebody else")
OTHER: Final = Bad(
    BAD_PARAMS, "requestState: other parameters: it belongs to a request with another target or arguments"
)
EXPIRED: Final = Bad(BAD_PARAMS, "requestState: expired: too much time went by; send the request anew without it")
TOO_LARGE: Final = Bad(INTERNAL, "the upstream's requestState is too large to be carried (limit: seal.LARGEST)")


class Sealed(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a sealed text says.

    Attributes:
        principal: Name of the principal that it was given to.
        method: Method of the request.
        digest: Its `digest`.
        expires: When it ends, in seconds since 1970.
        upstream: Name of the upstream that asks.
        round: Round that the retry answers, from 1.
        call: Id of the parked call; empty where nothing is parked, because the upstream keeps no call open.
        state: The upstream's own state; None if it has none.
        reissue: Whether the retry sends the call anew, after an address was visited.
        answers: Answers to questions of the round that did not go to the host, by key.
        awaited: What the host's answers must be, by key: the kind, and the defaults of a form.
    """

    principal: str
    method: str
    digest: str
    expires: float
    upstream: str
    round: int = 1
    call: str = ""
    state: str | None = None
    reissue: bool = False
    answers: dict[str, Raw] = {}
    awaited: dict[str, tuple[QuestionKind, dict[str, Raw]]] = {}

    def expected(self) -> dict[str, Expected]:
        """What the host's answers must be, as the exchange takes it."""
        return {key: Expected(kind=kind, defaults=defaults) for key, (kind, defaults) in self.awaited.items()}


def of_round(
    asked: Round, *, principal: str, method: str, digest: str, expires: float, upstream: str, call: str = ""
) -> Sealed:
    """What must be remembered of a round of questions.

    Args:
        asked: The round.
        principal: Name of the principal whose call it is.
        method: Method of the call.
        digest: Its `digest`.
        expires: When the state ends, in seconds since 1970.
        upstream: Name of the upstream.
        call: Id of the parked call; empty where nothing is parked.
    """
    return Sealed(
        principal=principal,
        method=method,
        digest=digest,
        expires=expires,
        upstream=upstream,
        call=call,
        round=asked.number,
        state=asked.state,
        reissue=asked.reissue,
        answers={key: Raw(msgspec.json.encode(answer)) for key, answer in asked.answers.items()},
        awaited={key: (one.kind, dict(one.defaults)) for key, one in asked.expected.items()},
    )


@dataclass(frozen=True, slots=True)
class Key:
    """A key.

    Attributes:
        id: Told apart by it; derived from the key and useless without it.
        secret: 32 bytes.
    """

    id: str
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> Key:
        """The key of these bytes."""
        return cls(hashlib.sha256(b"troth key id" + secret).hexdigest()[:_ID], secret)


@dataclass(frozen=True, slots=True)
class Keys:
    """The key that seals, and the one before, which still opens.

    Attributes:
        current: Seals and opens.
        previous: Opens; None where there is none.
    """

    current: Key
    previous: Key | None = None

    @classmethod
    def made(cls) -> Keys:
        """A key for this run. What it seals is lost with the run."""
        return cls(Key.of(os.urandom(_KEY)))

    @classmethod
    def given(cls, texts: Sequence[str]) -> Keys | str:
        """Keys that the operator configured: the current one, and the one before.

        Args:
            texts: One or two texts of at least `SHORTEST_KEY` random characters.

        Returns:
            The keys, or why they cannot be used.
        """
        if not 1 <= len(texts) <= 2:
            return "one key belongs here, or two: the current one and the one before"
        if any(len(text) < SHORTEST_KEY for text in texts):
            return f"a key has at least {SHORTEST_KEY} characters; make one with: openssl rand -base64 32"
        first, *rest = (Key.of(hashlib.sha256(b"troth key" + text.encode()).digest()) for text in texts)
        return cls(first, rest[0] if rest else None)

    @classmethod
    def kept(cls, path: Path, now: float) -> Keys | str:
        """Keys in a file (mode 0600), made where there is none; one that is old gets a successor.

        Args:
            path: The file.
            now: Seconds since 1970.

        Returns:
            The keys, or why they cannot be read or written.
        """
        found = read_private(path)
        if isinstance(found, str):
            return found
        keys = [key for name in ("current", "previous") if (key := _key(found.get(name))) is not None]
        made = found.get("made")
        if keys and isinstance(made, int | float) and now - made < KEY_AGE:
            return cls(*keys)
        fresh = cls(Key.of(os.urandom(_KEY)), keys[0] if keys else None)
        told = {"made": now, "current": fresh.current.secret.hex()}
        if fresh.previous is not None:
            told["previous"] = fresh.previous.secret.hex()
        return write_private(path, told) or fresh


def _key(value: object) -> Key | None:
    try:
        secret = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        return None
    return Key.of(secret) if len(secret) == _KEY else None


class Seal:
    """Seals and opens. The `cryptography` package is imported at the first use.

    Args:
        keys: The keys.
    """

    def __init__(self, keys: Keys) -> None:
        self._current = keys.current
        self._keys = {key.id: key for key in (keys.previous, keys.current) if key is not None}
        self._ciphers: dict[str, Any] = {}

    def seal(self, sealed: Sealed) -> str | Bad:
        """The text to hand to a host; or why there is none: the upstream's state is too large."""
        head = f"{_FORM}.{self._current.id}."
        nonce = os.urandom(_NONCE)
        body = self._cipher(self._current).encrypt(nonce, msgspec.json.encode(sealed), head.encode())
        text = head + _text(nonce + body)
        return text if len(text) <= LARGEST else TOO_LARGE

    def open(self, text: str, principal: str, method: str, digest: str, now: float) -> Sealed | Bad:
        """What a text says that a host brought back.

        Args:
            text: The text.
            principal: Name of the principal who brings it.
            method: Method of the retry.
            digest: Its `digest`.
            now: Seconds since 1970.

        Returns:
            What was sealed; or -32602 that says which: tampered, foreign, other parameters, or expired.
        """
        sealed = self._opened(text)
        if isinstance(sealed, Bad):
            return sealed
        if sealed.principal != principal:
            return FOREIGN
        if (sealed.method, sealed.digest) != (method, digest):
            return OTHER
        return sealed if now < sealed.expires else EXPIRED

    def _opened(self, text: str) -> Sealed | Bad:
        from cryptography.exceptions import InvalidTag

        form, _, rest = text.partition(".")
        name, dot, body = rest.partition(".")
        if len(text) > LARGEST or form != _FORM or not dot:
            return TAMPERED
        key = self._keys.get(name)
        if key is None:
            return UNKNOWN_KEY
        data = _data(body)
        if len(data) < _NONCE:
            return TAMPERED
        try:
            plain = self._cipher(key).decrypt(data[:_NONCE], data[_NONCE:], f"{_FORM}.{name}.".encode())
            return msgspec.json.decode(plain, type=Sealed)
        except (InvalidTag, msgspec.MsgspecError):
            # The second: sealed by a version of ours that says other things.
            return TAMPERED

    def _cipher(self, key: Key) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return self._ciphers.setdefault(key.id, AESGCM(key.secret))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _data(text: str) -> bytes:
    """The bytes of a text; empty unless it is exactly what `_text` writes: unused bits count."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (ValueError, binascii.Error):
        return b""
    return data if _text(data) == text else b""


_TARGET: Final = ("name", "uri", "arguments")
"""Members of params that say what is asked for. `_meta`, answers and state differ from round to round."""


def digest(method: str, params: Mapping[str, Raw]) -> str:
    """A digest that two requests share exactly when they ask for the same.

    Members may stand in any order and be spaced in any way. Numbers are compared by their text: ``1`` and ``1.0``
    differ, and no number is too large.

    Args:
        method: The method.
        params: Members of its params; only those that name the target and its arguments count.
    """
    target = {name: _canonical(params[name]) for name in _TARGET if name in params}
    text = json.dumps([method, target], separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _canonical(raw: Raw) -> object:
    return json.loads(
        bytes(raw), parse_int=_number, parse_float=_number, parse_constant=_number, object_pairs_hook=_members
    )


def _number(text: str) -> dict[str, str]:
    """A number as its text, in an object that no object of the frame looks like."""
    return {"#": text}


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Members of an object, their names marked; one that stands there twice counts with all its values."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        members.setdefault(f".{name}", []).append(value)
    return members
