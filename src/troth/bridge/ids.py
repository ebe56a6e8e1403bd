"""Ids of the requests that go to an upstream: ours, never the host's, and never to be guessed. Sans-IO.

A host that could guess the id of another host's call could answer or cancel it through an upstream that mixes them
up. Ids are integers, as the official SDKs send them, so that a server that takes no other sort works; and at most
2**52, so that every reader of JSON holds them exactly.
"""

from __future__ import annotations

from hashlib import blake2b

LEAST_SEED = 16
"""Bytes that a seed must have: 128 bits are beyond guessing."""

_HALF = 26
_MASK = (1 << _HALF) - 1
_ROUNDS = 4
"""Rounds of a Feistel network from which on its output cannot be told from chance (Luby and Rackoff)."""


class IdMint:
    """Hands out ids for one session with an upstream: no id twice, and none that tells the next.

    Args:
        seed: At least `LEAST_SEED` bytes from a source of randomness, new for each session, at most 64. The same seed
            gives the same ids.

    Raises:
        ValueError: The seed is too short or too long.
    """

    def __init__(self, seed: bytes) -> None:
        if not LEAST_SEED <= len(seed) <= blake2b.MAX_KEY_SIZE:
            raise ValueError(f"a seed has {LEAST_SEED} to {blake2b.MAX_KEY_SIZE} bytes, not {len(seed)}")
        self._keys = [blake2b(key=seed, salt=bytes([turn]), digest_size=4) for turn in range(_ROUNDS)]
        self._count = 0

    def next(self) -> int:
        """The next id, between 0 and 2**52."""
        left, right = self._count >> _HALF & _MASK, self._count & _MASK
        self._count += 1
        for key in self._keys:
            state = key.copy()
            state.update(right.to_bytes(4, "big"))
            left, right = right, left ^ (int.from_bytes(state.digest(), "big") & _MASK)
        return left << _HALF | right
