"""Variables in the strings of a configuration: ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}``, ``{env:VAR}``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLE = re.compile(r"\$\{(?P<dollar>[^{}]*)\}|\{env:(?P<brace>[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Unset:
    """A variable that has no value.

    Attributes:
        problem: What is wrong.
        mend: What to do.
    """

    problem: str
    mend: str


def expand(text: str, path: str, environ: Mapping[str, str]) -> str | Unset:
    """The text with the values of its variables.

    Args:
        text: With any number of variables in it.
        path: The file that it stands in, for ``${workspaceFolder}``.
        environ: Where variables are looked up.
    """
    unset: list[Unset] = []

    def replace(match: re.Match[str]) -> str:
        value = _value(match, path, environ)
        if isinstance(value, Unset):
            unset.append(value)
            return ""
        return value

    result = _VARIABLE.sub(replace, text)
    return unset[0] if unset else result


def _value(match: re.Match[str], path: str, environ: Mapping[str, str]) -> str | Unset:
    inner = match["brace"] if match["dollar"] is None else match["dollar"]
    name, marked, default = inner.removeprefix("env:").partition(":-")
    folder = Path(path).resolve().parent
    known = {
        "workspaceFolder": str(folder.parent if folder.name == ".vscode" else folder),
        "userHome": os.path.expanduser("~"),  # noqa: PTH111 - Path.home() raises where there is none
    }
    if inner in known:
        return known[inner]
    if inner.startswith("input:"):
        return Unset(f"{match[0]} is a question that only the editor asks", "write ${env:NAME} instead")
    value = environ.get(name)
    # As in a shell, `:-` also replaces an empty value.
    if marked and not value:
        return default
    if value is None:
        return Unset(f"{match[0]}: the variable {name} is not set", f"set it, or write ${{{name}:-default}}")
    return value
