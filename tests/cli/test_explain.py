"""`troth explain` at the command line. Write the goldens anew with ``python tests/cli/test_explain.py``."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from troth.audit.model import Verdict
from troth.audit.verdicts import VERDICTS
from troth.cli import main
from troth.register import register
from troth.register.find import names

GOLDENS = Path(__file__).with_name("goldens")
CASES: dict[str, list[str]] = {
    "explain-capability.txt": ["CAP-17"],
    "explain-capability.json": ["CAP-17", "--format", "json"],
    "explain-capability.md": ["--format", "markdown", "CAP-17"],
    "explain-both-sides.txt": ["tasks"],
    "explain-path.txt": ["roots.listChanged"],
    "explain-path.json": ["roots.listChanged", "--format", "json"],
    "explain-method.txt": ["resources/subscribe"],
    "explain-method.json": ["resources/subscribe", "--format", "json"],
    "explain-method.md": ["resources/subscribe", "--format", "markdown"],
    "explain-error.txt": ["--", "-32021"],
    "explain-error.json": ["--format", "json", "--", "-32021"],
    "explain-error.md": ["--format", "markdown", "--", "-32021"],
    "explain-gap.txt": ["G-06"],
    "explain-gap.json": ["G-06", "--format", "json"],
    "explain-revision.txt": ["2026-07-28"],
    "explain-host.txt": ["opencode-v1"],
    "explain-list.txt": ["--list"],
    "explain-list.md": ["--list", "--format", "markdown"],
}


def run(arguments: list[str]) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["explain", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("name", CASES)
def test_explain_prints(name: str) -> None:
    assert run(CASES[name]) == (0, (GOLDENS / name).read_text("utf-8"))


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_everything_that_is_listed_can_be_explained(style: str) -> None:
    for name in names(register()):
        code, output = run(["--format", style, "--", name])
        assert code == 0, name
        if style == "json":
            assert json.loads(output)["entries"], name
        elif style == "text":
            assert [line for line in output.splitlines() if len(line) > 100] == [], name
            assert "`" not in output, name


def test_the_list_as_json_names_every_row() -> None:
    code, output = run(["--list", "--format", "json"])
    assert code == 0
    assert [row["id"] for row in json.loads(output)["capabilities"]] == [row.id for row in register().rows]


def test_a_capability_ends_with_hosts_and_with_what_breaks() -> None:
    for row in register().rows:
        output = run([row.id])[1]
        assert output.index("\nHosts\n") < output.index("\nWhen it is declared and not kept\n"), row.id
        assert " ".join(output.split()).endswith(row.breaks), row.id


def test_an_error_code_needs_no_dashes_before_it() -> None:
    assert run(["-32021"]) == run(["--", "-32021"])


@pytest.mark.parametrize("query", ["cap-17", "Resources.Subscribe"])
def test_letter_case_does_not_matter(query: str) -> None:
    assert run([query]) == run(["CAP-17"])


def test_a_miss_names_the_near_and_exits_with_2() -> None:
    code, output = run(["roots.listChange"])
    assert code == 2
    assert output.splitlines()[-1] == (
        "Error: The register knows nothing called 'roots.listChange'. Did you mean roots.listChanged or "
        "prompts.listChanged or tools.listChanged? `troth explain --list` shows every name."
    )


def test_a_miss_without_anything_near_points_to_the_list() -> None:
    code, output = run(["qqqqqqqq"])
    assert code == 2
    assert output.splitlines()[-1] == (
        "Error: The register knows nothing called 'qqqqqqqq'. `troth explain --list` shows every name."
    )


@pytest.mark.parametrize(("query", "name"), [("Broken", "broken"), ("not seen", "not-observable")])
def test_a_verdict_is_explained(query: str, name: str) -> None:
    code, output = run(["--format", "json", query])
    assert code == 0
    told = VERDICTS[Verdict(name)]
    entry = {"code": name, "severity": told.severity.value, "meaning": told.text, "source": ""}
    assert json.loads(output) == {"topic": "verdict", "entries": [entry]}


def test_the_code_of_a_finding_is_explained() -> None:
    assert run(["listen.untagged"]) == (
        0,
        "listen.untagged\nA message of a listen stream lacks its subscription id.\n\nA finding of the audit\n"
        "  severity      error.\n  laid down in  docs/specification/2026-07-28/basic/index.mdx:412\n",
    )


def test_a_misspelt_finding_is_put_right() -> None:
    code, output = run(["tools.slwo"])
    assert code == 2
    assert "Did you mean tools.slow? " in output


def test_a_hostile_query_is_shown_tame_and_short() -> None:
    code, output = run(["\x1b[31m" + "x" * 1000])
    assert code == 2
    assert "\x1b" not in output
    assert len(output) < 400


@pytest.mark.parametrize("arguments", [[], ["CAP-17", "--list"]])
def test_one_query_or_the_list_is_wanted(arguments: list[str]) -> None:
    code, output = run(arguments)
    assert code == 2
    assert output.splitlines()[-1] == "Error: Give either one QUERY or --list."


def test_a_misspelt_option_is_no_query() -> None:
    code, output = run(["--fromat"])
    assert code == 2
    assert output.splitlines()[-1] == "Error: No such option '--fromat'."


@pytest.mark.parametrize(("extra", "styled"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)])
def test_colours_are_for_terminals_that_want_them(extra: dict[str, str], styled: bool) -> None:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    command = [sys.executable, "-m", "troth", "explain", "G-06"]
    try:
        subprocess.run(command, stdout=theirs, env={**environment, **extra}, timeout=60, check=True)
        output = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert ("\x1b[" in output) is styled
    assert "What does an elicitation object mean" in output


def write() -> None:
    GOLDENS.mkdir(exist_ok=True)
    for name, arguments in CASES.items():
        (GOLDENS / name).write_text(run(arguments)[1], "utf-8")


if __name__ == "__main__":
    write()
