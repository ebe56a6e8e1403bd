"""Parked calls: found by their id, bounded in number, each bound with its name."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.bridge.errors import ErrorValue
from troth.gateway.limits import Limits
from troth.gateway.parking import LOST, USED, Parked, Parking


def lot(**limits: int) -> Parking[str]:
    return Parking[str]("run", Limits(**limits))


def put(parking: Parking[str], principal: str = "ann", upstream: str = "files") -> Parked[str]:
    parked = parking.put("call", principal=principal, upstream=upstream)
    assert isinstance(parked, Parked), parked
    return parked


def limit(found: object) -> object:
    assert isinstance(found, ErrorValue)
    assert found.code == -32000
    assert isinstance(found.data, dict)
    assert f"(limit: {found.data['limit']})" in found.message
    return found.data["limit"]


def test_a_call_is_found_until_it_ends() -> None:
    parking = lot()
    parked = put(parking)
    assert parking.find(parked.id) is parked
    parking.end(parked)
    parking.end(parked)
    assert parking.find(parked.id) is USED
    assert (USED.code, "already used" in USED.message) == (-32602, True)


def test_rule_17_a_call_of_another_run_was_lost() -> None:
    parking = lot()
    assert parking.find("earlier-1") is LOST
    assert (LOST.code, "may have had effects" in LOST.message) == (-32603, True)
    assert parking.find("run-99") is USED


@pytest.mark.parametrize("name", ["parked", "principal_parked", "upstream_parked"])
def test_rule_7_every_cap_has_its_name_and_its_error(name: str) -> None:
    parking = lot(**{name: 2})
    put(parking)
    second = put(parking)
    assert limit(parking.put("x", principal="ann", upstream="files")) == name
    parking.end(second)
    put(parking)


def test_one_principal_or_upstream_that_is_full_leaves_room_for_others() -> None:
    parking = lot(principal_parked=1, upstream_parked=2)
    put(parking, "ann")
    put(parking, "bob")
    assert limit(parking.put("x", principal="eve", upstream="files")) == "upstream_parked"
    put(parking, "eve", "mail")
    assert limit(parking.put("x", principal="eve", upstream="other")) == "principal_parked"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.booleans())))
def test_what_ends_makes_room_in_every_cap(steps: list[tuple[str, str, bool]]) -> None:
    parking = lot(parked=4, principal_parked=3, upstream_parked=3)
    there: list[Parked[str]] = []
    for principal, upstream, ends in steps:
        if ends and there:
            parking.end(there.pop(0))
            continue
        owners = Counter(parked.principal for parked in there)
        servers = Counter(parked.upstream for parked in there)
        fits = len(there) < 4 and owners[principal] < 3 and servers[upstream] < 3
        parked = parking.put("call", principal=principal, upstream=upstream)
        assert isinstance(parked, Parked) is fits
        if isinstance(parked, Parked):
            there.append(parked)
        assert parking.all() == there
        assert len(parking) == len(there)


def test_a_parked_call_costs_under_a_kilobyte() -> None:
    parking = lot()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(1000):
        put(parking, f"p{number % 50}")
    each = (tracemalloc.get_traced_memory()[0] - before) / 1000
    tracemalloc.stop()
    assert each < 1000, each
