"""What holds for the repository as a whole."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/troth"
GENERATED = {SOURCE / "_version.py"}
MODULES = sorted(set(SOURCE.rglob("*.py")) - GENERATED)
ROOMS = (
    "troth",
    "troth.bridge",
    "troth.capabilities",
    "troth.gating",
    "troth.register",
    "troth.results",
    "troth.results.typed",
    "troth.testing",
)
LONGEST = 600
"""Lines of a file; about 400 is the aim."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def wanted() -> set[str]:
    """Every package that the project names."""
    value = project()
    groups = [
        value["build-system"]["requires"],
        value["project"]["dependencies"],
        *value["project"]["optional-dependencies"].values(),
        *value["dependency-groups"].values(),
    ]
    given = [entry for group in groups for entry in group if isinstance(entry, str)]
    return {re.split(r"[^\w.-]", entry, maxsplit=1)[0].lower() for entry in given} | {"uv"}


def test_every_dependency_has_a_line_with_its_reason_and_none_is_left_over() -> None:
    page = (ROOT / "docs/dev/dependencies.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w.-]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert sorted(name for name, *_ in rows) == sorted(wanted())
    assert [name for name, *cells in rows if not all(cell.strip() for cell in cells)] == []


def test_the_interpreters_that_are_promised_begin_with_the_least_one() -> None:
    value = project()
    least = value["project"]["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {least}" in value["project"]["classifiers"]
    assert value["tool"]["pyright"]["pythonVersion"] == least
    assert value["tool"]["ruff"]["target-version"] == f"py{least.replace('.', '')}"


def style(name: str) -> tuple[int, str]:
    """Constants first, then classes, then functions, each by name: the order that the linter keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def offered(module: str) -> set[str]:
    """What a room takes from its own modules or defines, without what is only for type checkers."""
    value = import_module(module)
    assert value.__file__ is not None
    names: set[str] = set()
    for node in ast.parse(Path(value.__file__).read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("troth."):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("room", ROOMS)
def test_the_public_names_of_a_room_exist_once_and_in_order(room: str) -> None:
    module = import_module(room)
    assert list(module.__all__) == sorted(set(module.__all__), key=style)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize(
    "room",
    ["troth.bridge", "troth.capabilities", "troth.gating", "troth.register", "troth.results", "troth.testing"],
)
def test_a_room_exports_all_that_its_front_holds(room: str) -> None:
    assert set(import_module(room).__all__) == offered(room)


def test_the_package_knows_a_home_for_all_that_it_exports() -> None:
    package = import_module("troth")
    homes = vars(package)["_HOMES"]
    assert set(homes) == set(package.__all__)
    assert [name for name, home in homes.items() if not hasattr(import_module(home), name)] == []


def test_every_module_says_what_it_is() -> None:
    assert [named(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))] == []


def test_no_module_is_long() -> None:
    lengths = {named(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


@pytest.mark.parametrize("folder", ["register", "capabilities", "gating", "bridge"])
def test_the_deciding_rooms_read_no_clock_and_write_no_log(folder: str) -> None:
    banned = {"datetime", "logging", "random", "threading", "time"}
    found = {
        (named(path), name)
        for path in (SOURCE / folder).rglob("*.py")
        for name in re.findall(r"^\s*(?:import|from) (\w+)", path.read_text("utf-8"), re.MULTILINE)
        if name in banned
    }
    assert found == set()


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout, so nobody knows which files belong to it")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, timeout=60, check=True).stdout
    return [path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()]


FOREIGN = re.compile(rb"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|tmp/w)(?:/|\b)")
"""Folders of somebody's machine. Pages and tests name files relative to the repository."""
EXAMPLES = (b"/home/user", b"/home/me", b"/Users/me", b"/Users/user")


def foreign(content: bytes) -> list[bytes]:
    return [found[0] for found in FOREIGN.finditer(content) if found[0].rstrip(b"/") not in EXAMPLES]


def test_folders_of_a_machine_are_seen() -> None:
    parts = [b"work", b"root", b"home/ada", b"Users/ada", b"tmp/w"]
    assert [foreign(b'see "/' + part + b'/x"') for part in parts] == [[b"/" + part + b"/"] for part in parts]
    assert foreign(b"a framework/root, ../work/x, /workspace, /home/user/x, https://example.com/work") == []


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    found = {named(path): hits for path in tracked() if (hits := foreign(path.read_bytes()))}
    assert found == {}


def test_no_page_or_module_leans_on_a_folder_beside_the_repository() -> None:
    beside = "../" + "shared"
    files = [path for path in tracked() if not path.is_relative_to(ROOT / "tests")]
    assert [named(path) for path in files if beside.encode() in path.read_bytes()] == []


def test_nothing_is_left_to_do_in_a_comment() -> None:
    mark = re.compile(rb"#.*\b(?:TO" + rb"DO|FIX" + rb"ME|XX" + rb"X)\b")
    assert [named(path) for path in tracked() if path.suffix == ".py" and mark.search(path.read_bytes())] == []
