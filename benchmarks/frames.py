"""What reading and rewriting a relayed frame costs, beside decoding all of it, in one run.

    python benchmarks/frames.py

Prints microseconds of CPU time per frame: `read` and `rewrite` with another id, `read`, `opened` and `rewrite` with one
more member of the body, `json.loads` with `json.dumps`, and msgspec decoding and encoding everything; then the ratios
to the first. Each figure is the best of rounds that are interleaved, so that a busy machine slows all alike.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec

from troth.bridge import Frame, opened, read, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15
ROUND = 0.02
"""Seconds of one round of one subject."""


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def call(**meta: object) -> dict[str, Any]:
    params = {"_meta": {"progressToken": 7, **meta}, "name": "echo", "arguments": {"text": "x" * 24}}
    return {"jsonrpc": "2.0", "id": 12, "method": "tools/call", "params": params}


def tool(number: int) -> dict[str, Any]:
    properties = {f"p{i}": {"type": "string", "description": "One of the parameters of it"} for i in range(9)}
    return {
        "name": f"tool_{number}",
        "description": "Does " + "one thing and another " * 17,
        "inputSchema": {"type": "object", "properties": properties, "required": ["p1"]},
    }


def result(**members: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 12, "result": {"_meta": {"server": "x"}, **members}}


def texts(characters: int) -> list[dict[str, str]]:
    return [{"type": "text", "text": 'A line of "text"\n' * (characters // 19)}]


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
FRAMES = {
    "request": compact(call(**MODERN)),
    "request, spaced": json.dumps(call(**MODERN)).encode(),
    "response": compact(result(content=texts(80), isError=False, resultType="complete")),
    "result of 100 kB": compact(result(content=texts(100_000), isError=False)),
    "200 tools": compact(result(tools=[tool(i) for i in range(200)])),
    "result of 1 MB": compact(result(content=texts(1_000_000), isError=False)),
}


def relayed(data: bytes) -> bytes:
    frame = read(data)
    assert isinstance(frame, Frame)
    return rewrite(frame, id=4_503_599_627_370_495)


def changed(data: bytes) -> bytes:
    frame = read(data)
    assert isinstance(frame, Frame)
    frame = opened(frame)
    assert isinstance(frame, Frame)
    return rewrite(frame, id=4_503_599_627_370_495, meta={"progressToken": 5})


def modelled(data: bytes) -> bytes:
    value = json.loads(data)
    value["id"] = 4_503_599_627_370_495
    return json.dumps(value).encode()


def decoded(data: bytes) -> bytes:
    value = msgspec.json.decode(data)
    value["id"] = 4_503_599_627_370_495
    return msgspec.json.encode(value)


SUBJECTS: dict[str, Callable[[bytes], bytes]] = {
    "id": relayed,
    "id and member": changed,
    "json": modelled,
    "msgspec": decoded,
}


def spent(work: Callable[[bytes], bytes], data: bytes, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        work(data)
    return (time.process_time() - began) / times


def main() -> None:
    print(f"{'us of CPU':20}{'bytes':>9}" + "".join(f"{name:>15}" for name in SUBJECTS) + f"{'ratios':>24}")
    for name, data in FRAMES.items():
        times = {subject: max(1, int(ROUND / spent(work, data, 3))) for subject, work in SUBJECTS.items()}
        best = dict.fromkeys(SUBJECTS, float("inf"))
        for _ in range(ROUNDS):
            for subject, work in SUBJECTS.items():
                best[subject] = min(best[subject], spent(work, data, times[subject]))
        first = best["id"]
        ratios = " : ".join(f"{value / first:.1f}" for value in best.values())
        print(f"{name:20}{len(data):>9}" + "".join(f"{v * 1e6:>15.1f}" for v in best.values()) + f"  {ratios:>22}")


if __name__ == "__main__":
    main()
