"""What an audit of all revisions costs, beside the server's own start-ups in the same run.

    python benchmarks/audit_cost.py -- python -m mcp_server_time

Prints wall time, CPU time (user and system, of the process tree) and peak memory of the auditor; first of as many bare
start-ups of the server as there are revisions (a handshake each, one after the other), then of one audit of all
revisions. The ratio between the two is the figure to compare: both are made on the same machine in the same minute.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import NamedTuple

from troth.register import Era, register


class Cost(NamedTuple):
    """Seconds of wall time, seconds of CPU time of the whole tree, peak memory of the largest process in MiB."""

    wall: float
    cpu: float
    peak: float


def spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def start_up(command: list[str], revision: str) -> None:
    """Starts the server, shakes hands, and ends it."""
    params = {
        "protocolVersion": revision if register().era(revision) is Era.LEGACY else register().newest(Era.LEGACY),
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    }
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdin.close()
        process.wait(30)


def measured(work: list[list[str]] | None, command: list[str]) -> Cost:
    before, began = spent(), time.monotonic()
    peak = 0.0
    if work is None:
        for revision in register().revisions:
            start_up(command, revision)
    else:
        for words in work:
            done = subprocess.run(["/usr/bin/env", *words], check=False, capture_output=True, text=True)
            peak = float(json.loads(done.stderr.splitlines()[-1])["peak"])
    return Cost(time.monotonic() - began, spent() - before, peak)


AUDIT = """
import json, resource, sys
from troth.cli import main
try:
    main(["audit", "--fail-on", "never", "--format", "json", "--", *sys.argv[1:]])
except SystemExit:
    pass
print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), file=sys.stderr)
"""


def main() -> None:
    command = sys.argv[sys.argv.index("--") + 1 :]
    starts = measured(None, command)
    audit = measured([[sys.executable, "-c", AUDIT, *command]], command)
    print(f"{'':34}{'wall s':>8}{'cpu s':>8}{'peak MiB':>10}")
    print(f"{len(register().revisions)} start-ups, one after the other{starts.wall:>11.1f}{starts.cpu:>8.1f}")
    print(f"one audit of all revisions{audit.wall:>16.1f}{audit.cpu:>8.1f}{audit.peak:>10.0f}")
    print(f"ratio{audit.wall / starts.wall:>37.2f}{audit.cpu / starts.cpu:>8.2f}")


if __name__ == "__main__":
    main()
