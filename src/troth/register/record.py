"""What the register knows about one thing, as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from troth.register.find import Topic
from troth.register.practice import told

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.register.find import Found
    from troth.register.load import Register
    from troth.register.model import Row


def record(register: Register, found: Found) -> dict[str, Any]:
    """What was found: its topic, and one entry for each row or name."""
    return {"topic": found.topic.value, "entries": [_RECORDS[found.topic](register, key) for key in found.keys]}


def listing(register: Register) -> dict[str, Any]:
    """Everything that can be asked for, by topic."""
    return {
        "capabilities": [
            {
                "id": row.id,
                "path": row.path,
                "side": row.side.value,
                "title": row.title,
                "revisions": [*row.definitions],
                "deprecated": [revision for revision, at in row.definitions.items() if at.outdated],
            }
            for row in register.rows
        ],
        "methods": sorted({method for method, _ in register.methods}),
        "errors": [{"code": error.code, "name": error.name} for error in register.errors],
        "gaps": [{"id": gap.id, "question": gap.question} for gap in register.gaps.values()],
        "revisions": [*register.revisions],
        "hosts": [{"id": host.id, "product": host.product} for host in register.hosts.values()],
    }


def _capability(register: Register, key: str) -> dict[str, Any]:
    row = register.by_id[key]
    return {
        "id": row.id,
        "family": row.family,
        "side": row.side.value,
        "path": row.path,
        "extension": row.extension,
        "title": row.title,
        "whenAbsent": row.when_absent,
        "revisions": {
            revision: asdict(definition) if (definition := row.at(revision)) else None
            for revision in register.revisions
        },
        "norms": [asdict(register.norms[norm]) for norm in row.norms],
        "gaps": [asdict(register.gaps[gap]) for gap in row.gaps],
        "sources": [*row.sources],
        "hosts": _hosts(register, row),
        "breaks": row.breaks,
    }


def _hosts(register: Register, row: Row) -> dict[str, list[str]]:
    return {
        host.id: [phrase.replace("`", "") for phrase in told(register, row, host)] for host in register.hosts.values()
    }


def _method(register: Register, key: str) -> dict[str, Any]:
    return {
        "method": key,
        "revisions": {
            revision: {"roles": [*use.roles], "rows": [*use.rows]} if (use := register.method(key, revision)) else None
            for revision in register.revisions
        },
        "hosts": {
            host.id: {
                "calls": asdict(use) if (use := host.calling(key)) else None,
                "neverCalls": host.never(key),
                "honours": asdict(use) if (use := host.honouring(key)) else None,
                "ignores": asdict(use) if (use := host.ignoring(key)) else None,
            }
            for host in register.hosts.values()
        },
    }


def _revision(register: Register, key: str) -> dict[str, Any]:
    return {
        "revision": key,
        "era": register.era(key).value,
        "capabilities": [
            {"id": row.id, "side": row.side.value, "path": row.path} for row in register.rows if key in row.definitions
        ],
        "methods": {
            method: {"roles": [*use.roles], "rows": [*use.rows]}
            for (method, at), use in register.methods.items()
            if at == key
        },
        "errors": [error.code for error in register.errors_at(key)],
        "norms": [norm.id for norm in register.norms_at(key)],
    }


def _error(register: Register, key: str) -> dict[str, Any]:
    return next(asdict(error) for error in register.errors if str(error.code) == key)


_RECORDS: dict[Topic, Callable[[Register, str], dict[str, Any]]] = {
    Topic.CAPABILITY: _capability,
    Topic.METHOD: _method,
    Topic.ERROR: _error,
    Topic.GAP: lambda register, key: asdict(register.gaps[key]),
    Topic.REVISION: _revision,
    Topic.HOST: lambda register, key: asdict(register.hosts[key]),
}
