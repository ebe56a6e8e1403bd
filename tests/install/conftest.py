"""Fixtures of this folder."""

from __future__ import annotations

from install_hosts import anyio_backend, make, mode

__all__ = ["anyio_backend", "make", "mode"]
