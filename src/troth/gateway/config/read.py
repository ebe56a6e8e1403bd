"""From a configuration file to settings: everything that is wrong is said at once, and no secret is."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from troth.bridge.names import prefix_for
from troth.config import Fault, Unset, expand, mapping, read_entry, read_text, shown
from troth.gateway.config import keys
from troth.gateway.config.source import Source, read_source
from troth.gateway.settings import (
    EraChoice,
    GatewaySettings,
    Policy,
    Share,
    TokenSettings,
    Transport,
    UpstreamSettings,
    reserved,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.config import Entry

MEMBER = tuple[str, ...]
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RESERVED_TOKENS = frozenset({"anonymous", "stdio", "operator"})
_FOREIGN = frozenset(
    {
        "alwaysAllow",
        "autoApprove",
        "bearer_token_env_var",
        "description",
        "dev",
        "disabledTools",
        "enabledTools",
        "envFile",
        "gallery",
        "headersHelper",
        "icon",
        "id",
        "metadata",
        "note",
        "oauth",
        "sandbox",
        "sandboxEnabled",
        "timeout",
        "tools",
        "version",
    }
)
"""Members that hosts know in an entry and that mean nothing here."""
_CONVERTED: Mapping[str, type] = {"era": EraChoice, "share": Share}


@dataclass(frozen=True, slots=True)
class Faults:
    """Why a configuration cannot be used.

    Attributes:
        faults: All that is wrong, in the file's order.
    """

    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


def load(path: str, environ: Mapping[str, str]) -> GatewaySettings | Faults:
    """Reads ``troth.toml``, or a host's JSON file.

    Args:
        path: The file; TOML if it is named so.
        environ: Where variables are looked up.

    Returns:
        The settings; or everything that is wrong.
    """
    text = read_text(path)
    return Faults((text,)) if isinstance(text, Fault) else load_text(path, text, environ)


def load_text(path: str, text: str, environ: Mapping[str, str]) -> GatewaySettings | Faults:
    """The same for a text that need not stand in the file yet."""
    source = read_source(path, text)
    if isinstance(source, Fault):
        return Faults((source,))
    reader = _Reader(source, environ)
    settings = reader.settings()
    faults = sorted(reader.faults, key=lambda fault: fault.line or 0)
    return Faults(tuple(faults)) if faults else settings


def near(word: str, known: Iterable[str]) -> str:
    """What a misspelled word was meant to be, as advice."""
    names = [*known]
    close = difflib.get_close_matches(word, names, 1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or 'none'}"


class _Reader:
    def __init__(self, source: Source, environ: Mapping[str, str]) -> None:
        self.source, self.environ = source, environ
        self.faults: list[Fault] = [*source.faults]
        self.notes: list[str] = [*source.notes]

    def fault(self, path: MEMBER, problem: str, mend: str = "") -> None:
        """Notes a fault at the nearest place whose line is known."""
        line = next((at for end in range(len(path), 0, -1) if (at := self.source.line(path[:end])) is not None), None)
        self.faults.append(Fault(self.source.file, ".".join(path), problem, mend.removesuffix("."), line))

    def settings(self) -> GatewaySettings:
        source = self.source
        for name in source.sections:
            if name not in keys.SECTIONS:
                known = [*keys.SECTIONS, *(["servers"] if source.toml else [])]
                self.fault((*source.sections_path, name), "is no section", near(name, known))
        upstreams = [
            found for name, value in source.servers.items() if (found := self.upstream(name, value)) is not None
        ]
        self.prefixes(upstreams)
        gateway = self.table("gateway")
        given = self.values(gateway[0], gateway[1], keys.GATEWAY)
        self.words((*gateway[0], "answer_command"), given.get("answer_command", ()))
        return GatewaySettings(
            upstreams=tuple(upstreams),
            tokens=self.tokens(),
            policies=self.policies(*self.table("policies")),
            profiles=self.profiles(),
            path=source.file,
            notes=tuple(self.notes),
            **given,
        )

    def table(self, name: str) -> tuple[MEMBER, Mapping[str, Any]]:
        """A section: where it stands, and what is in it."""
        path = (*self.source.sections_path, name)
        return path, self.object(path, self.source.sections.get(name, {}))

    def object(self, path: MEMBER, value: object) -> Mapping[str, Any]:
        members = mapping(value)
        if members is None:
            self.fault(path, "must be a table" if self.source.toml else "must be an object")
        return members or {}

    def values(self, path: MEMBER, members: Mapping[str, Any], known: Iterable[keys.Key]) -> dict[str, Any]:
        """What a table says by the keys that it may have; unknown ones are faults."""
        table = {key.name: key for key in known}
        result: dict[str, Any] = {}
        for name, value in members.items():
            key = table.get(name)
            if key is None:
                self.fault((*path, name), "is no key that is known here", near(name, table))
                continue
            text = self.expanded((*path, name), value) if key.variables else value
            if isinstance(text, Unset):
                continue
            judged, wrong = keys.judge(key, text)
            for item in wrong:
                member = (item.member,) if item.member else ()
                self.fault((*path, name, *member), item.problem, item.mend)
            if not wrong:
                result[name] = judged
        return result

    def expanded(self, path: MEMBER, value: object) -> object:
        """A text, or a list of texts, with its variables replaced; `Unset` where one is missing, which is a fault."""
        if isinstance(value, list):
            items = [self.expanded((*path, str(at)), item) for at, item in enumerate(cast("list[object]", value))]
            return next((item for item in items if isinstance(item, Unset)), items)
        if not isinstance(value, str):
            return value
        text = expand(value, self.source.file, self.environ)
        if isinstance(text, Unset):
            self.fault(path, text.problem, text.mend)
        return text

    # Servers

    def upstream(self, name: str, value: object) -> UpstreamSettings | None:
        path = (*self.source.servers_path, name)
        entry = read_entry(self.source.file, path, value, self.environ, self.source.line)
        if entry.disabled:
            return None
        before = len(self.faults)
        self.faults += entry.faults
        self.name(path, name)
        own = self.own(path, entry.members)
        self.renames(path, own)
        self.reach(path, entry)
        if len(self.faults) > before:
            return None
        where = f"{self.source.file}:{entry.line}" if entry.line else self.source.file
        return UpstreamSettings(
            name=name,
            transport=_transport(entry),
            command=entry.command,
            env=entry.env,
            cwd=entry.cwd,
            url=entry.url,
            headers=entry.headers,
            where=where,
            **{key: _CONVERTED[key](item) if key in _CONVERTED else item for key, item in own.items()},
        )

    def name(self, path: MEMBER, name: str) -> None:
        if not name.strip() or not name.isprintable() or len(name) > keys.LONGEST_NAME:
            self.fault(
                path,
                "is no name for a server",
                f"write 1 to {keys.LONGEST_NAME} printable characters",
            )

    def own(self, path: MEMBER, members: Mapping[str, Any]) -> dict[str, Any]:
        """Troth's own keys of a server."""
        own_names = {key.name for key in keys.OWN}
        start = {key.name for key in keys.START}
        for flag in ("disabled", "enabled"):
            if not isinstance(members.get(flag, True), bool):
                self.fault((*path, flag), "must be true or false")
        if self.source.toml:
            rest = {name: value for name, value in members.items() if name not in start}
            unknown = [name for name in rest if name not in own_names]
            for name in unknown:
                self.fault((*path, name), "is no key of a server", near(name, [*sorted(start), *sorted(own_names)]))
            return self.values(path, {name: rest[name] for name in rest if name in own_names}, keys.OWN)
        known = start | {*keys.ALIASES} | {"troth"}
        for name in members:
            if name in own_names:
                self.fault(
                    (*path, name),
                    "is a key of Troth, which a host's file has apart",
                    f'write it inside "troth": {{"{name}": ...}}',
                )
            elif name not in known and name not in _FOREIGN and difflib.get_close_matches(name, known, 1, 0.75):
                self.fault((*path, name), "is no key that is known here", near(name, known))
            elif name not in known:
                self.notes.append(f"{'.'.join((*path, shown(name)[1:-1]))}: has no effect here.")
        return self.values((*path, "troth"), self.object((*path, "troth"), members.get("troth", {})), keys.OWN)

    def renames(self, path: MEMBER, own: Mapping[str, Any]) -> None:
        home = path if self.source.toml else (*path, "troth")
        shown_as: dict[str, str] = {}
        for tool, name in own.get("rename", {}).items():
            if name in shown_as:
                self.fault(
                    (*home, "rename", tool),
                    f"gives the name {shown(name)}, as does {shown(shown_as[name])}",
                    "give each tool a name of its own",
                )
            shown_as[name] = tool

    def reach(self, path: MEMBER, entry: Entry) -> None:
        """Whether a process can be started, or an address spoken to."""
        if entry.url_key and entry.url and (problem := url_problem(entry.url)):
            self.fault((*path, entry.url_key), problem, "write it as in http://localhost:8000/mcp")
        self.words((*path, "command"), entry.command)
        for name, value in entry.env.items():
            if not name or "=" in name or "\0" in name + value:
                self.fault((*path, "env", name), "is no variable that a process can be given")
        for name, value in entry.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                self.fault((*path, "headers", name), "is no name of a header")
            elif reserved(name):
                self.fault((*path, "headers", name), "is a header that Troth sets itself", "leave it out")
            elif not value.isprintable() or not value.isascii():
                self.fault((*path, "headers", name), "has a character that no header may have")

    def words(self, path: MEMBER, command: Iterable[str]) -> None:
        """Whether a process can be given these words."""
        if any("\0" in word for word in command):
            self.fault(path, "has a NUL in it")

    def prefixes(self, upstreams: list[UpstreamSettings]) -> None:
        taken: dict[str, str] = {}
        for item in upstreams:
            path = (*self.source.servers_path, item.name)
            prefix = prefix_of(item)
            if isinstance(prefix, Unset):
                self.fault(path, prefix.problem, prefix.mend)
            elif prefix and prefix in taken:
                self.fault(
                    path,
                    f"has the prefix {prefix!r}, as has {shown(taken[prefix])}",
                    "set a `prefix` of its own for one of them",
                )
            else:
                taken[prefix] = item.name

    # Sections

    def tokens(self) -> tuple[TokenSettings, ...]:
        home, members = self.table("tokens")
        result: list[TokenSettings] = []
        for name, value in members.items():
            path = (*home, name)
            given = self.object(path, value)
            if mapping(value) is None:
                continue
            if not re.fullmatch(keys.TOKEN_NAME, name) or name in _RESERVED_TOKENS:
                self.fault(
                    path, "is no name for a token", "write letters, digits, `.`, `_` and `-`, and no reserved word"
                )
            found = self.values(path, given, keys.TOKENS)
            token, profile = found.get("token", ""), found.get("profile", "")
            if "token" not in given:
                self.fault(path, "has no 'token'")
            self.token(path, token, result)
            self.profile((*path, "profile"), profile)
            result.append(TokenSettings(name=name, token=token, profile=profile))
        return tuple(result)

    def token(self, path: MEMBER, token: str, others: Iterable[TokenSettings]) -> None:
        if token and not keys.SHORTEST_TOKEN <= len(token) <= keys.LONGEST_TOKEN:
            self.fault(
                (*path, "token"),
                f"has {len(token)} characters",
                f"write {keys.SHORTEST_TOKEN} to {keys.LONGEST_TOKEN} that nobody can guess",
            )
        same = next((other.name for other in others if token and other.token == token), None)
        if same is not None:
            self.fault((*path, "token"), f"is also the token of {same!r}", "give each host one of its own")

    def profile(self, path: MEMBER, profile: str) -> bool:
        if not profile:
            return False
        # Only configurations that name a profile pay for the register.
        from troth.register import register

        known = register().hosts
        if profile not in known:
            self.fault(path, f"names an unknown host profile: {shown(profile)}", near(profile, known))
        return profile in known

    def policies(self, path: MEMBER, members: Mapping[str, Any]) -> dict[str, Policy]:
        return {family: Policy(value) for family, value in self.values(path, members, keys.POLICIES).items()}

    def profiles(self) -> dict[str, Mapping[str, Policy]]:
        home, members = self.table("profiles")
        return {
            name: self.policies((*home, name), self.object((*home, name), value))
            for name, value in members.items()
            if self.profile((*home, name), name)
        }


def _transport(entry: Entry) -> Transport:
    if entry.command:
        return Transport.STDIO
    return Transport.SSE if entry.kind == "sse" else Transport.HTTP


def prefix_of(upstream: UpstreamSettings) -> str | Unset:
    """The prefix of a server that is not alone: the operator's, or the one made from its name."""
    if upstream.prefix is not None:
        return upstream.prefix
    made = prefix_for(upstream.name)
    return Unset("gives no prefix", 'set `prefix`, as in prefix = "files"') if made is None else made


def url_problem(url: str) -> str:
    """Why a URL cannot be an upstream's address, without repeating it; empty if it can."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"is no URL ({error})"
    if parts.scheme not in ("http", "https"):
        return "is no http or https URL"
    if not parts.hostname or any(char.isspace() or not char.isprintable() for char in url):
        return "is no URL (no host, or a space in it)"
    return ""
