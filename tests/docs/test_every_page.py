"""What the pages say is so: examples, command lines, links, names, numbers."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from troth import capabilities
from troth.audit.report import FORMATS
from troth.audit.verdicts import VERDICTS
from troth.audit.wire.types import Limits
from troth.cli import audit, main
from troth.register import register
from troth.wire.start import INHERITED

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLES = [page for page in PAGES if ">>> " in page.read_text("utf-8")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
STOPS = {"|", "||", "&&", ";", ">", "2>", "<", "&"}
SHELLS = {"sh", "yaml", "console"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands(page: str) -> Iterator[str]:
    """The command lines of Troth on a page: in blocks for a shell, and between backticks."""
    for language, block in FENCE.findall(page):
        if language in SHELLS:
            lines = (line for line in block.splitlines() if not line.startswith("pip install "))
            yield from (line for line in lines if re.search(r"(^|[\s/])troth ", line))
    yield from re.findall(r"`((?:uvx )?troth [^`]*)`", FENCE.sub("", page))


def words(command: str) -> list[str]:
    """What `troth` gets of a command line: what stands after its name, up to a pipe or the like."""
    found = shlex.split(re.sub(r"^\s*(-\s+)?run:\s*", "", command), comments=True)
    start = next(index for index, word in enumerate(found) if word.rpartition("/")[2] in {"troth", "troth@latest"})
    rest = found[start + 1 :]
    return rest[: next((index for index, word in enumerate(rest) if word in STOPS), len(rest))]


COMMANDS = sorted({(named(page), command) for page in PAGES for command in commands(page.read_text("utf-8"))})


def parse(arguments: list[str]) -> None:
    """Parses as `troth` does, and runs nothing.

    Raises:
        click.UsageError: The arguments are wrong.
    """
    if arguments[:1] in (["--help"], ["--version"]):
        with pytest.raises(click.exceptions.Exit), main.make_context("troth", list(arguments)):
            pass
        return
    name, command, rest = main.resolve_command(click.Context(main), list(arguments))
    assert command is not None
    with command.make_context(name, rest):
        pass


@pytest.mark.parametrize("page", EXAMPLES, ids=named)
def test_every_example_gives_what_it_shows(page: Path) -> None:
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(page.read_text("utf-8"), {}, page.name, str(page), 0)

    outcome = doctest.DocTestRunner(verbose=False).run(test, out=report.append)

    assert outcome.attempted > 0
    assert outcome.failed == 0, "".join(report)


def test_the_pages_that_must_have_examples_have_them() -> None:
    assert {named(page) for page in EXAMPLES} >= {"README.md", "docs/capabilities-library.md", "docs/results.md"}


def test_command_lines_are_found_where_they_are() -> None:
    page = (
        "Say `troth explain X`.\n```sh\nuvx troth audit :1\n.venv/bin/troth --help | cat\n```\n```text\ntroth no\n```\n"
    )

    assert [words(command) for command in commands(page)] == [["audit", ":1"], ["--help"], ["explain", "X"]]


def test_a_wrong_command_line_is_seen() -> None:
    for wrong in (
        ["audit", "--formt", "json"],
        ["audit", "--format", "pdf"],
        ["adit"],
        ["explain", "--list", "a", "b"],
    ):
        with pytest.raises(click.UsageError):
            parse(wrong)


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_every_command_line_is_understood(page: str, command: str) -> None:
    parse(words(command))


@pytest.mark.parametrize("command", sorted({command for _, command in COMMANDS if " explain" in command}))
def test_everything_that_a_page_has_explained_can_be_explained(command: str) -> None:
    outcome = CliRunner().invoke(main, words(command))

    assert outcome.exit_code == (2 if words(command) == ["explain"] else 0), outcome.output


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    plain = (heading.replace("\\", "").replace("`", "").lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text("utf-8")))
    lost: list[str] = []
    for link in links:
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / place).resolve() if place else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_the_map_names_every_page() -> None:
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")} - {"index.md"}
    assert pages - set(re.findall(r"\]\(([^)]*)\)", text("docs/index.md"))) == set()


def test_every_make_rule_that_a_page_names_exists() -> None:
    rules = set(re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE))
    told = {
        name: set(re.findall(r"(?:`|^|&& )make ([a-z]+)", page.read_text("utf-8"), re.MULTILINE))
        for name, page in ((named(p), p) for p in PAGES)
    }
    assert {name: missing for name, found in told.items() if (missing := found - rules)} == {}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/dev/ground.md"])
def test_every_file_that_a_page_for_developers_names_exists(page: str) -> None:
    places = [ROOT, ROOT / "src/troth", ROOT / "src/troth/audit"]
    files = [name for name in re.findall(r"`([\w./]+/[\w./]*)`", text(page)) if not name.startswith(".")]
    known = {name for name, _ in register().methods} | {"dist/"}
    assert len(files) > 3
    assert [name for name in files if name not in known and not any((place / name).exists() for place in places)] == []


def test_no_page_for_users_takes_troth_from_where_it_is_not() -> None:
    assert "troth is not on PyPI yet" in text("README.md")
    taken = r"(uvx|pipx run|(pip|pipx|tool) install|uv add) (-\S+ )*['\"]?troth\b(?!\S* @ )"
    assert re.search(taken, "- run: uvx troth audit")
    assert re.search(taken, "pip install -U 'troth[mcp]'")
    pages = [page for page in PAGES if page.name != "CONTRIBUTING.md"]
    assert [named(page) for page in pages if re.search(taken, page.read_text("utf-8"))] == []


def test_the_first_page_is_short() -> None:
    assert len(text("README.md").splitlines()) < 170


def test_the_first_page_tells_the_verdicts_as_they_are() -> None:
    rows = re.findall(r"^\| ([\w\- ]+?)(?: \(`([\w-]+)`\))? \| [^|]+ \| ?(\w*) ?\|$", text("README.md"), re.MULTILINE)
    told = {spelled or name: severity for name, spelled, severity in rows if name != "verdict"}
    assert told == {str(name): str(meaning.severity).replace("none", "") for name, meaning in VERDICTS.items()}


def troth(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as on a terminal of 100 columns without colours."""
    command = [sys.executable, "-m", "troth", *(sys.executable if word == "python" else word for word in arguments)]
    environ = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, encoding="utf-8", env=environ, timeout=90
    )


def sample(beginning: str) -> str:
    """The block of the first page that begins so."""
    return next(block for _, block in FENCE.findall(text("README.md")) if block.startswith(beginning))


@pytest.mark.interop
def test_the_first_page_shows_what_the_demo_shows() -> None:
    table = sample("mcp_server_time").partition("Capabilities\n")[2]
    outcome = troth("audit", "--fail-on", "never", "--", "python", "-m", "mcp_server_time")

    assert outcome.returncode == 0, outcome.stderr
    assert "kept" in table
    assert outcome.stdout.partition("Capabilities\n")[2].partition("\n\n")[0] == table.rstrip("\n")


def test_the_first_page_shows_what_a_broken_promise_looks_like() -> None:
    shown, _, again = sample("error ").partition("  sent ")
    outcome = troth(*words(" ".join(again.partition("again ")[2].split())))

    assert outcome.returncode == 1, outcome.stderr
    assert "BROKEN" in shown
    assert shown in outcome.stdout


def test_every_option_of_the_audit_is_in_its_guide() -> None:
    page = text("docs/audit.md").partition("## Options")[2].partition("\n## ")[0]
    options = [param.opts for param in audit.command.params if isinstance(param, click.Option)]
    assert [names for names in options if not all(f"`{name}" in page for name in names)] == []


def test_every_format_is_in_the_guide_of_the_audit() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ", text("docs/audit.md").partition("## Formats")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert rows == [*FORMATS]


def test_every_exit_status_is_in_the_guide_of_the_audit() -> None:
    rows = re.findall(r"^\| (\d+) \| ", text("docs/audit.md"), re.MULTILINE)
    statuses = (audit.KEPT, audit.FINDINGS, audit.USAGE, audit.UNCHECKED, audit.INTERRUPTED)
    assert rows == [str(status) for status in statuses]


def test_the_limits_in_the_guide_are_those_of_the_audit() -> None:
    section = text("docs/audit.md").partition("## Limits")[2].partition("\n## ")[0]
    told = {name: float(value) for name, value in re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", section, re.MULTILINE)}
    assert told == {field.name: float(getattr(Limits(), field.name)) for field in fields(Limits)}


def test_the_guide_names_the_variables_that_a_target_inherits() -> None:
    section = text("docs/audit.md").partition("## What a started target gets")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([A-Z_]+)`", section)) == set(INHERITED)


@pytest.mark.parametrize("name", [name for name in capabilities.__all__ if name.islower()])
def test_every_function_on_capabilities_is_on_their_page(name: str) -> None:
    assert re.search(rf"\b{name}\(", text("docs/capabilities-library.md"))
