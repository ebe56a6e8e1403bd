"""Twenty seconds of the soak: nothing that was promised is lost, nothing stays, and its hosts are right themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import anyio
import conformance
import pytest
from soak_hosts import Ledger, LegacyHttp, LegacyStdio, ModernHttp, ModernStdio, Plan

from soak import soak

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def test_hosts_of_the_soak_find_nothing_broken_in_a_server_by_itself(tmp_path: Path) -> None:
    ledger = Ledger()

    def done() -> bool:
        return ledger.counts["calls of steady servers"] > 20 and ledger.counts["calls left in the middle"] > 0

    async def live(url: str) -> None:
        plan = Plan(url, ("",), (), conformance.DUAL, pause=(0.01, 0.1))
        async with aiohttp.ClientSession() as client, anyio.create_task_group() as group:
            for seed, kind in enumerate((LegacyHttp, ModernHttp, LegacyHttp, ModernHttp)):
                group.start_soon(kind(plan, ledger, seed, client).run)
            group.start_soon(LegacyStdio(plan, ledger, 10).run)
            group.start_soon(ModernStdio(plan, ledger, 11).run)
            with anyio.move_on_after(100):
                await anyio.sleep(6)
                # A busy machine takes longer for as much.
                while not done():  # noqa: ASYNC110 - nobody sets an event
                    await anyio.sleep(0.1)
            group.cancel_scope.cancel()

    with conformance.upstream(conformance.KINDS["dual"], tmp_path) as (url, _):
        anyio.run(live, url)
    assert ledger.broken == []
    assert done()


def test_a_short_soak_breaks_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    assert soak(seconds=20, hosts=40, seed=7, folder=tmp_path) == []
