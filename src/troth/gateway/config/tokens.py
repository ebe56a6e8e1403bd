"""Credentials that `troth connect` makes, one per host, beside the operator's configuration."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from troth.config import Fault, mapping
from troth.gateway.config import keys
from troth.gateway.config.read import Faults, load
from troth.gateway.private import read_private, write_private
from troth.gateway.settings import TokenSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from troth.gateway.settings import GatewaySettings

_BYTES = 32
"""Random bytes of a token: 256 bits."""


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(_BYTES)


def read_tokens(path: Path) -> tuple[TokenSettings, ...] | Fault:
    """The credentials of a file, none where there is no file; or why it cannot be used."""
    found = read_private(path)
    if isinstance(found, str):
        return Fault(str(path), "", found.removeprefix(f"{path}: "), "mend it, or remove it and connect hosts again")
    tokens: list[TokenSettings] = []
    for name, value in found.items():
        members = mapping(value) or {}
        token, profile = members.get("token"), members.get("profile", "")
        if not (isinstance(token, str) and isinstance(profile, str) and _usable(name, token)):
            return Fault(str(path), name, "is no credential", "remove it and connect that host again")
        tokens.append(TokenSettings(name=name, token=token, profile=profile))
    return tuple(tokens)


def _usable(name: str, token: str) -> bool:
    fits = keys.SHORTEST_TOKEN <= len(token) <= keys.LONGEST_TOKEN
    return fits and bool(re.fullmatch(keys.TOKEN, token)) and bool(re.fullmatch(keys.TOKEN_NAME, name))


def keep_token(path: Path, name: str, profile: str) -> TokenSettings | Fault:
    """The credential of a host: the one in the file, else a new one that is put there (mode 0600).

    Args:
        path: The file.
        name: Name of the credential.
        profile: Profile of the register that the host is treated by; empty for none.
    """
    known = read_tokens(path)
    if isinstance(known, Fault):
        return known
    kept = next((token for token in known if token.name == name), None)
    if kept is not None:
        return kept
    made = TokenSettings(name=name, token=new_token(), profile=profile)
    problem = write_private(
        path, {item.name: {"token": item.token, "profile": item.profile} for item in (*known, made)}
    )
    return Fault(str(path), "", problem.removeprefix(f"{path}: ")) if problem else made


def with_tokens(settings: GatewaySettings, tokens: tuple[TokenSettings, ...]) -> GatewaySettings:
    """The settings with further credentials; of two with one name the configuration's counts."""
    own = {token.name for token in settings.tokens}
    further = tuple(token for token in tokens if token.name not in own)
    return replace(settings, tokens=(*settings.tokens, *further)) if further else settings


def load_with_tokens(path: str, environ: Mapping[str, str], tokens: Path) -> GatewaySettings | Faults:
    """What `load` reads, with the credentials that ``troth connect`` made.

    Args:
        path: The configuration.
        environ: Where variables are looked up.
        tokens: The file of credentials (`find.TOKENS` in the operator's configuration folder).
    """
    settings = load(path, environ)
    if isinstance(settings, Faults):
        return settings
    kept = read_tokens(tokens)
    return Faults((kept,)) if isinstance(kept, Fault) else with_tokens(settings, kept)
