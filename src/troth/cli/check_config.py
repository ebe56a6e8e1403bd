"""`troth check-config`: whether a configuration can be used, and how to mend it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from troth.config import Fault
    from troth.gateway.settings import GatewaySettings

FAULTY = 1
"""Exit status where there are faults."""


@click.command(
    short_help="Tell whether a configuration of the gateway can be used, and how to mend it.",
    epilog="Exit status: 0 no fault, 1 faults, 2 wrong usage or no configuration.",
)
@click.argument("config", required=False)
@click.option(
    "--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to tell it."
)
@click.option(
    "--schema", type=click.Choice(["toml", "json"]), help="Print the JSON Schema of that form of the file instead."
)
def command(config: str | None, style: str, schema: str | None) -> None:
    """Tell whether a configuration can be served: every fault with its file, line and path, and how to mend it.

    CONFIG is troth.toml or a host's list of servers (mcp.json); without it, it is looked for as by serve. Nothing is
    started.
    """
    if schema is not None:
        _print_schema(config, schema)
        return
    from troth.cli.configured import UNUSABLE, chosen, tokens_file
    from troth.gateway.config import Faults, load_with_tokens

    path = chosen(config)
    found = load_with_tokens(path, os.environ, tokens_file())
    faults = found.faults if isinstance(found, Faults) else ()
    names = () if isinstance(found, Faults) else tuple(item.name for item in found.upstreams)
    notes = () if isinstance(found, Faults) else (*found.notes, *_missing(found))
    if style == "json":
        told = {"file": path, "servers": names, "faults": [asdict(fault) for fault in faults], "notes": notes}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        _tell(path, names, faults, notes)
    sys.exit(0 if not faults else FAULTY if Path(path).is_file() else UNUSABLE)


def _print_schema(config: str | None, form: str) -> None:
    if config is not None:
        raise click.UsageError("--schema checks no file: leave CONFIG out.")
    name = {"toml": "troth.schema.json", "json": "mcp.schema.json"}[form]
    click.echo((resources.files("troth.gateway.config") / name).read_text("utf-8"), nl=False)


def _tell(path: str, names: tuple[str, ...], faults: tuple[Fault, ...], notes: tuple[str, ...]) -> None:
    for fault in faults:
        click.echo(str(fault))
    for note in notes:
        click.echo(f"{path}: note: {note}")
    if faults:
        click.echo(f"{len(faults)} fault{'s' if len(faults) > 1 else ''}.")
    else:
        click.echo(f"{path}: no fault. Servers: {', '.join(names) or 'none'}.")


def _missing(settings: GatewaySettings) -> list[str]:
    """Programs and folders that are not there now: no fault, since they may be there when they are needed."""
    notes: list[str] = []
    for item in settings.upstreams:
        if item.cwd is not None and not Path(item.cwd).is_dir():
            notes.append(f"{item.name}: there is no folder {item.cwd}.")
        elif item.command and not _program(item.command[0], item.cwd, item.env.get("PATH")):
            notes.append(f"{item.name}: there is no program {item.command[0]!r} on the path.")
    answers = settings.answer_command
    if answers and not _program(answers[0], None, None):
        notes.append(f"answer_command: there is no program {answers[0]!r} on the path.")
    return notes


def _program(name: str, cwd: str | None, path: str | None) -> bool:
    if os.path.dirname(name):  # noqa: PTH120 - Path() drops a leading ./
        return shutil.which(str(Path(cwd or ".") / name)) is not None
    return shutil.which(name, path=path) is not None
