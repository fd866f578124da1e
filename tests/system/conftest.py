"""Each test has namespaces of its own."""

import pytest
from support.netns import Bench, add_address


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def net(bench):
    """The bench with an address on the computer's side."""
    add_address(bench)
    return bench
