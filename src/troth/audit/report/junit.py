"""The report as JUnit XML: a test suite per target and revision, a test case per row and finding."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from troth.audit.model import Outcome, Verdict
from troth.audit.report.common import excerpt, outcome_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from troth.audit.model import TargetReport
    from troth.audit.report.common import Item, View


def render(view: View) -> str:
    """The report as JUnit XML.

    Errors are failures, as is what ``view.fail_on`` reaches; what was not seen or not served is skipped; a target or
    revision that could not be checked is an error; a stale entry of the baseline is a failure.
    """
    suites = [suite for target in view.report.targets for suite in _suites(view, target)]
    if view.report.stale:
        cases = [
            _failed(_case("baseline", entry), "stale", "in the baseline and no longer found")
            for entry in view.report.stale
        ]
        suites.append(_suite("baseline", cases, view.report.started_at))
    root = ET.Element("testsuites", {"name": "troth audit", **_counts(suites)})
    root.extend(suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suites(view: View, target: TargetReport) -> Iterable[ET.Element]:
    items: dict[str, list[Item]] = {}
    for item in view.items_of(target):
        items.setdefault(item.revision, []).append(item)
    whole = [_item(view, item) for item in items.get("", ())]
    if target.outcome is not Outcome.CHECKED:
        whole.append(_unchecked(target.name, "target", target.outcome, outcome_words(target)))
    if whole:
        yield _suite(target.name, whole, target.started_at)
    for revision, part in target.revisions.items():
        cases = [_item(view, item) for item in items.get(revision, ())]
        if part.outcome is not Outcome.CHECKED:
            cases.append(_unchecked(f"{target.name}.{revision}", "revision", part.outcome, outcome_words(part)))
        suite = _suite(f"{target.name} {revision}", cases, target.started_at)
        suite.set("time", f"{part.elapsed_ms / 1000:.3f}")
        yield suite


def _suite(name: str, cases: list[ET.Element], started: str) -> ET.Element:
    suite = ET.Element("testsuite", {"name": name, "timestamp": started.removesuffix("Z")})
    suite.extend(cases)
    for key, value in _counts([suite]).items():
        suite.set(key, value)
    return suite


def _counts(suites: Iterable[ET.Element]) -> dict[str, str]:
    cases = [case for suite in suites for case in suite.iter("testcase")]
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    found = {name: sum(case.find(tag) is not None for case in cases) for name, tag in kinds.items()}
    return {"tests": str(len(cases)), **{name: str(count) for name, count in found.items()}}


def _case(group: str, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": group, "name": name, "time": "0"})


def _failed(case: ET.Element, kind: str, message: str, text: str = "", tag: str = "failure") -> ET.Element:
    ET.SubElement(case, tag, {"type": kind, "message": message}).text = text
    return case


def _unchecked(group: str, name: str, outcome: Outcome, words: str) -> ET.Element:
    case = _case(group, name)
    if outcome is Outcome.NOT_SERVED:
        ET.SubElement(case, "skipped", {"message": words})
        return case
    return _failed(case, outcome.value, words, tag="error")


def _item(view: View, item: Item) -> ET.Element:
    group = f"{item.target}.{item.revision}" if item.revision else item.target
    case = _case(group, f"{item.id} {item.path}".strip())
    proof = [f"{label} {text}".strip() for label, text in excerpt(item.evidence, whole=view.verbose)]
    more = [f"{label}: {text}" for label, text in (("mend", item.hint), ("source", item.source)) if text]
    body = "\n".join([item.message, *more, *proof, f"again: {view.again(item)}"])
    kind = (item.verdict or item.severity).value
    if view.fails(item):
        return _failed(case, kind, item.message, body)
    if item.verdict is Verdict.NOT_OBSERVABLE or item.suppressed:
        words = f"baseline: {item.message}" if item.suppressed else f"not seen: {item.hint or item.message}"
        ET.SubElement(case, "skipped", {"message": words})
    elif item.message:
        ET.SubElement(case, "system-out").text = f"{kind}: {item.message}"
    return case
