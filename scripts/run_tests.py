"""Runs all tests under coverage, in two runs side by side: half of the time goes into waiting for other processes.

What each run prints comes when it has ended, so that the two do not mix.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST = ("tests/interop", "tests/cases", "tests/captures", "tests/soak", "tests/docs")
"""Folders of the first run: those that talk to the servers of others most."""
LIMIT = 3600
"""Seconds that a run may take."""


def runs() -> list[list[str]]:
    """The arguments of each run: together they are every test."""
    return [list(FIRST), ["tests", *(f"--ignore={folder}" for folder in FIRST)]]


def main() -> int:
    if missing := [folder for folder in FIRST if not (ROOT / folder).is_dir()]:
        print(f"{Path(__file__).name}: no folder {', '.join(missing)}: mend FIRST", file=sys.stderr)
        return 2
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", *sys.argv[1:]]
    started = []
    for index, arguments in enumerate(runs()):
        output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - until it is printed
        # Each keeps a memory of its own of what failed.
        options = ["-o", f"cache_dir=.pytest_cache/{index}"]
        process = subprocess.Popen([*command, *options, *arguments], cwd=ROOT, stdout=output, stderr=output)
        started.append((process, output))
    codes = []
    for process, output in started:
        try:
            codes.append(process.wait(LIMIT))
        except subprocess.TimeoutExpired:
            process.kill()
            codes.append(process.wait())
        output.seek(0)
        print(output.read(), flush=True)
        output.close()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
