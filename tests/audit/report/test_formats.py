from __future__ import annotations

import json
import runpy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
import pytest
import sample

from troth.audit.baseline import entries
from troth.audit.model import AuditReport, Outcome, Severity, Verdict
from troth.audit.report import FORMATS, render
from troth.audit.report.common import View, excerpt, span
from troth.audit.report.grid import MARKS
from troth.audit.report.markdown import code, escape
from troth.audit.targets import Place

ROOT = Path(__file__).parents[3]


def sarif(report: AuditReport, **options: Any) -> dict[str, Any]:
    return json.loads(render(report, "sarif", **options))["runs"][0]


def test_the_schema_that_ships_is_the_one_of_the_structs() -> None:
    generator = runpy.run_path(str(ROOT / "scripts/generate_schema.py"))
    assert generator["PATH"].read_text("utf-8") == generator["schema"]()


@pytest.mark.parametrize("report", ["one", "several", "kept"])
def test_the_json_report_fits_its_schema_and_reads_back(report: str) -> None:
    text = render(getattr(sample, report)(), "json")
    schema = json.loads((ROOT / "src/troth/audit/report/schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    assert msgspec.json.decode(text, type=AuditReport) == getattr(sample, report)()


def test_the_json_report_has_the_promised_members() -> None:
    value = json.loads(render(sample.one(), "json"))
    assert {"troth", "startedAt", "commandLine", "targets"} <= set(value)
    target = value["targets"][0]
    assert {"name", "transport", "serverInfo", "revisions"} <= set(target)
    part = target["revisions"]["2025-11-25"]
    assert {"negotiated", "era", "declared", "rows", "findings"} <= set(part)
    assert {"id", "path", "side", "verdict", "severity", "message", "evidence"} <= set(part["rows"][0])


def test_json_lines_begin_with_a_header_and_end_with_a_summary() -> None:
    lines = [json.loads(line) for line in render(sample.several(), "jsonl").splitlines()]
    assert lines[0]["type"] == "header"
    assert lines[-1] == {
        "type": "summary",
        "verdicts": {
            "kept": 5, "absent": 73, "not-observable": 8, "empty": 4, "undeclared": 4, "leaked": 3, "partial": 4,
            "malformed": 4, "ungated": 4, "broken": 3,
        },
        "severities": {"error": 15, "warning": 11, "note": 5},
        "suppressed": 2,
        "stale": ["files 2025-11-25 CAP-99 broken"],
    }  # fmt: skip
    rows = [line for line in lines if line["type"] == "row"]
    assert all({"target", "revision", "id", "verdict", "severity", "evidence"} <= set(line) for line in rows)
    assert {line["target"] for line in rows} == {"files", "web"}


def test_sarif_has_the_members_that_code_scanning_requires() -> None:
    report = sample.several()
    run = sarif(report)
    driver = run["tool"]["driver"]
    assert driver["name"] == "troth"
    rules = [rule["id"] for rule in driver["rules"]]
    assert rules == sorted(set(rules))
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in driver["rules"])
    faults = [item for item in View(report=report).items if item.severity is not Severity.NONE]
    assert [result["ruleId"] for result in run["results"]] == [item.id for item in faults]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"] == {"uri": "mcp.json", "uriBaseId": "%SRCROOT%"}
        assert physical["region"]["startLine"] == 1


def test_sarif_fingerprints_are_stable_and_differ_between_faults() -> None:
    first = [result["partialFingerprints"]["troth/v1"] for result in sarif(sample.one())["results"]]
    later = msgspec.structs.replace(sample.one(), started_at="2027-01-01T00:00:00Z", troth="2.0.0")
    assert [result["partialFingerprints"]["troth/v1"] for result in sarif(later)["results"]] == first
    assert len(set(first)) == len(first)


@pytest.mark.parametrize(
    ("options", "uri", "line"),
    [
        ({"anchor": Place("a b.json", 3)}, "a%20b.json", 3),
        ({"places": {"files": Place("mcp.json", 7)}}, "mcp.json", 7),
        ({"places": {"files": Place("mcp.json", 7)}, "anchor": Place("x.py")}, "x.py", 1),
        ({"anchor": Place("/elsewhere/mcp.json", 3)}, "file:///elsewhere/mcp.json", 3),
        ({"anchor": Place(str(Path.cwd() / "sub" / "mcp.json"), 3)}, "sub/mcp.json", 3),
    ],
)
def test_sarif_pins_findings_where_the_target_is_configured(options: dict[str, Any], uri: str, line: int) -> None:
    physical = sarif(sample.one(), **options)["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == uri
    assert physical["region"]["startLine"] == line


def test_sarif_marks_suppressed_findings() -> None:
    report = sample.one()
    known = frozenset(entry for entry in entries(report) if entry.id == "CAP-17")
    results = sarif(report, suppressed=known)["results"]
    marked = {result["ruleId"] for result in results if "suppressions" in result}
    assert marked == {"CAP-17"}
    assert all(result.get("suppressions") for result in results if result["ruleId"] == "CAP-17")


def test_junit_has_a_suite_per_target_and_revision_and_a_case_per_row() -> None:
    root = ET.fromstring(render(sample.several(), "junit").encode())
    names = [suite.get("name") for suite in root]
    assert names == [
        "files", "files 2025-06-18", "files 2025-11-25", "web 2025-11-25", "web 2026-07-28", "dead", "baseline",
    ]  # fmt: skip
    part = sample.several().targets[0].revisions["2025-11-25"]
    suite = root[2]
    assert len(suite.findall("testcase")) == len(part.rows) + len(part.findings) == int(suite.get("tests", ""))
    failed = {case.get("name", "").split()[0] for case in suite.findall("testcase") if case.find("failure") is not None}
    assert failed == {row.id for row in part.rows if row.severity is Severity.ERROR}
    skipped = {
        case.get("name", "").split()[0] for case in suite.findall("testcase") if case.find("skipped") is not None
    }
    assert skipped == {row.id for row in part.rows if row.verdict is Verdict.NOT_OBSERVABLE}
    assert [root.get(name) for name in ("failures", "errors", "skipped")] == ["16", "1", "8"]


@pytest.mark.parametrize(
    ("fail_on", "failures"), [(None, 15), (Severity.ERROR, 15), (Severity.WARNING, 26), (Severity.NOTE, 31)]
)
def test_junit_counts_as_failures_what_fail_on_reaches_and_all_errors(fail_on: Severity | None, failures: int) -> None:
    report = msgspec.structs.replace(sample.several(), stale=())
    root = ET.fromstring(render(report, "junit", fail_on=fail_on).encode())
    assert int(root.get("failures", "")) == failures


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_the_page_works_offline_without_scripts() -> None:
    page = Page()
    page.feed(render(sample.several(), "html"))
    assert {"script", "link", "img", "iframe", "a", "object", "base"}.isdisjoint(page.tags)
    assert {"src", "href", "srcset", "style"}.isdisjoint(name for name, _ in page.attributes)
    policies = [value for name, value in page.attributes if name == "content" and value and "default-src" in value]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    assert page.tags.count("details") == 7


def test_markdown_cannot_be_broken_out_of() -> None:
    assert escape("@team fixes #12, GH-7 | <b>x</b> [a](b) `c` https://x www.y.z") == (
        "@&#8203;team fixes #&#8203;12, GH&#8203;-7 \\| &lt;b&gt;x&lt;/b&gt; \\[a\\](b) \\`c\\`"
        " https:&#8203;//x www&#8203;.y.z"
    )
    assert [escape(text) for text in ("- a", "# a", "12. a", "it's")] == ["\\- a", "\\# a", "12\\. a", "it&#39;s"]
    assert [code(text) for text in ("a", "`", "a``b", "a|b")] == ["`a`", "`` ` ``", "```a``b```", "`a|b`"]
    assert code("a|b", cell=True) == "`a\\|b`"


def test_runs_of_revisions_are_named_by_their_ends() -> None:
    asked = ("a", "b", "c", "d", "e")
    assert span(("a", "b", "c"), asked) == "a to c"
    assert span(("a", "b", "d"), asked) == "a, b, d"
    assert span(("a", "c", "d", "e"), asked) == "a, c to e"
    assert span(asked, asked) == "every revision"
    assert span(("a",), ("a",)) == "a"
    assert span((), asked) == "as a whole"


def test_excerpts_are_cut_with_the_number_of_bytes() -> None:
    ((label, text),) = excerpt([sample.told(1, result="é" * 500)], whole=False)
    assert label == "received"
    assert text.endswith("bytes more)")
    assert len(text) < 200
    ((_, whole),) = excerpt([sample.told(1, result="é" * 500)], whole=True)
    assert json.loads(whole)["result"] == "é" * 500


def test_every_verdict_and_outcome_has_its_words() -> None:
    assert set(MARKS) == set(Verdict)
    words = [word for _, word in MARKS.values()]
    assert len(set(words)) == len(words)
    for outcome in Outcome:
        dead = sample.target(outcome=outcome, reason="because", revisions={}, findings=())
        report = msgspec.structs.replace(sample.kept(), targets=(dead,))
        assert all(render(report, form) for form in FORMATS)


@pytest.mark.parametrize(
    ("command_line", "again"),
    [
        (("troth", "audit", ":8000/mcp"), "troth audit --revision 2025-11-25 :8000/mcp"),
        (
            (
                "troth",
                "audit",
                "--format=json",
                "-o",
                "x",
                "--revision",
                "2024-11-05",
                "-v",
                "--active",
                "--",
                "a b",
                "-v",
            ),
            "troth audit --revision 2025-11-25 --active -- 'a b' -v",
        ),
        ((), "troth audit --revision 2025-11-25 -- python -m files --root '/srv/my files'"),
    ],
)
def test_each_finding_comes_with_a_command_that_shows_it_again(command_line: tuple[str, ...], again: str) -> None:
    report = msgspec.structs.replace(sample.kept(), command_line=command_line)
    view = View(report=report)
    assert view.again(view.items[0]) == again


def test_one_of_several_targets_is_shown_again_alone() -> None:
    report = msgspec.structs.replace(sample.several(), command_line=("troth", "audit", ":1", ":2"))
    view = View(report=report)
    by_target = {item.target: view.again(item) for item in view.items if item.revision == "2025-11-25"}
    assert by_target == {
        "files": "troth audit --revision 2025-11-25 -- python -m files --root '/srv/my files'",
        "web": "troth audit --revision 2025-11-25 'https://example.org/mcp?token=***'",
    }


@pytest.mark.behaviour("AUD-A14")
@pytest.mark.parametrize("form", ["text", "json", "jsonl", "markdown", "html", "sarif", "junit"])
def test_every_finding_names_row_revision_and_source(form: str) -> None:
    row = sample.row("CAP-17", Verdict.BROKEN, "Refused.")
    part = sample.revision_report("2025-11-25", rows=(row,), findings=(), host_view=None)
    report = msgspec.structs.replace(
        sample.kept(), targets=(sample.target(revisions={"2025-11-25": part}, findings=()),)
    )
    text = render(report, form)
    assert [word for word in ("CAP-17", "2025-11-25", row.source, "Refused.") if word not in text] == []
