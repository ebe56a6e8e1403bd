"""What the commands of the gateway share: which configuration is meant, and what is said when it cannot be used."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from troth.gateway.config.find import FILES, TOKENS, config_folder, config_folders, find_config, state_folder

if TYPE_CHECKING:
    from troth.config import Fault
    from troth.gateway.config import Faults
    from troth.gateway.settings import GatewaySettings

UNUSABLE = 2
"""Exit status where the command line is wrong, or there is no configuration that can be used."""


def home() -> Path:
    """The operator's home folder; the present one where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path.cwd()


def tokens_file() -> Path:
    """Where credentials of connected hosts are kept."""
    return config_folder(os.environ, home()) / TOKENS


def states() -> Path:
    """Where state and run files are kept."""
    return state_folder(os.environ, home())


def found() -> str | None:
    """The configuration that is used where none is named; None if there is none."""
    path = find_config(Path.cwd(), os.environ, home())
    # The operator reads messages in the folder where the command was given.
    return None if path is None else str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def chosen(given: str | None) -> str:
    """The configuration that is named, else the one that is found; ends the command where there is none."""
    path = found() if given is None else given
    if path is None:
        places = ", ".join(str(folder) for folder in config_folders(os.environ, home()))
        refuse(
            f"No configuration: neither {' nor '.join(FILES)} is in this folder or in {places}. Name a file, or begin "
            "one: troth add NAME -- COMMAND"
        )
    return path


def settings(path: str) -> GatewaySettings:
    """The settings of a configuration with the tokens of connected hosts; ends the command if there are faults."""
    from troth.gateway.config import Faults, load_with_tokens

    loaded = load_with_tokens(path, os.environ, tokens_file())
    if isinstance(loaded, Faults):
        refuse_faults(loaded)
    return loaded


def refuse_faults(faults: Faults | Fault) -> NoReturn:
    """Tells on standard error what is wrong, and ends the command."""
    click.echo(str(faults), err=True)
    sys.exit(UNUSABLE)


def refuse(message: str) -> NoReturn:
    """Ends the command with a message on standard error."""
    click.echo(f"Error: {message}", err=True)
    sys.exit(UNUSABLE)


def write_config(path: Path, text: str) -> None:
    """Replaces the configuration; it may be read by whom it could be read by before, a new one by its owner alone."""
    from troth.gateway.private import replace_text

    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    problem = replace_text(path, text, mode)
    if problem:
        refuse(problem)
