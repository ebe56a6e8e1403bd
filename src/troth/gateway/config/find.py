"""Folders of the operator: where configuration and state are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FILES = ("troth.toml", "mcp.json")
"""Names of configuration files, first one wins."""
TOKENS = "tokens.json"
"""Credentials that `troth connect` made, beside the operator's configuration."""


def config_folder(environ: Mapping[str, str], home: Path) -> Path:
    """The operator's configuration folder (XDG Base Directory Specification, "Environment variables")."""
    return _base(environ, "XDG_CONFIG_HOME", home / ".config") / "troth"


def state_folder(environ: Mapping[str, str], home: Path) -> Path:
    """The operator's folder for what survives a restart."""
    return _base(environ, "XDG_STATE_HOME", home / ".local" / "state") / "troth"


def _base(environ: Mapping[str, str], name: str, default: Path) -> Path:
    # The specification has relative paths ignored.
    given = Path(environ.get(name, ""))
    return given if given.is_absolute() else default


def config_folders(environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> tuple[Path, ...]:
    """Folders in which the operator's configuration is looked for."""
    folders = (config_folder(environ, home),)
    return (*folders, home / "Library" / "Application Support" / "troth") if platform == "darwin" else folders


def find_config(cwd: Path, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path | None:
    """The configuration to use where none is named: in this folder, else in the operator's; None if there is none."""
    folders = (cwd, *config_folders(environ, home, platform))
    return next((path for folder in folders for name in FILES if (path := folder / name).is_file()), None)
