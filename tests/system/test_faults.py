"""Each fault of docs/reliability.md once, at a moment that the seed chooses; `make soak` goes on."""

import pytest
from support.faults import FAULTS, Site
from support.sweep import long

# `kafka-anything` does the same, and more.
SINGLE = ("kafka-builder-killed", "kafka-broker-stalled", "kafka-network-cut", "kafka-clock-stepped")


@pytest.mark.parametrize("name", [long(name) if name in SINGLE else name for name in FAULTS])
def test_fault(name, net, request):
    fault = FAULTS[name]
    outcome = fault.run(Site(name, net, request.getfixturevalue("broker") if fault.kafka else None))
    assert outcome.lost == 0, f"{outcome}; promised: {fault.promise}"
