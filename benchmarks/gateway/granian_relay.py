"""The bare relay on granian: ``python -m benchmarks.gateway.granian_relay PORT URL CLIENT``."""

from __future__ import annotations

import os
import sys

from benchmarks.gateway.bare import Relay

app = Relay(os.environ.get("BENCH_URL", ""), os.environ.get("BENCH_CLIENT", "aiohttp"))


def main() -> None:
    from granian import Granian  # pyright: ignore[reportMissingImports]

    os.environ["BENCH_URL"], os.environ["BENCH_CLIENT"] = sys.argv[2:4]
    Granian(
        f"{__spec__.name}:app", port=int(sys.argv[1]), interface="asgi", loop="uvloop", log_enabled=False
    ).serve()  # fmt: skip


if __name__ == "__main__":
    main()
