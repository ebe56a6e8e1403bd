"""Holds coverage to its floors: 100 % of branches in the deciding rooms, 90 % everywhere else."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from coverage import Coverage

ROOMS = Path(__file__).parents[1] / "src/troth"
FLOORS = {"register": 100.0, "capabilities": 100.0, "results": 100.0, "bridge": 100.0}
FLOOR = 90.0


def main() -> int:
    coverage = Coverage()
    coverage.load()
    rooms = sorted(path.parent.name for path in ROOMS.glob("*/__init__.py"))
    failed = False
    for room in rooms:
        text = io.StringIO()
        percent = coverage.report(include=[f"*/troth/{room}/*"], file=text)
        floor = FLOORS.get(room, FLOOR)
        low = percent < floor
        failed |= low
        print(f"{room:14}{percent:6.1f} %  (floor {floor:.0f} %){'  TOO LOW' if low else ''}")
        if low:
            print(text.getvalue())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
