"""Each test has namespaces of its own."""

import pytest
import zmq
from support import faults
from support.broker import Broker
from support.crate import Builder
from support.lab import Lab
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


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A Kafka broker whose network can be cut."""
    broker = Broker(tmp_path_factory.mktemp("kafka"), host=faults.BROKER)
    yield broker
    broker.close()


@pytest.fixture
def lab(bench):
    return Lab(bench)


@pytest.fixture
def zeromq():
    """Of ZeroMQ. Its sockets end with the test: else this process would wait for them at its own end."""
    context = zmq.Context()
    yield context
    context.destroy(0)


@pytest.fixture
def build():
    """Starts builders, which end with the test."""
    started = []

    def make(*words, **options):
        started.append(Builder(*words, **options))
        return started[-1]

    yield make
    for builder in started:
        if builder.popen.poll() is None:
            builder.popen.kill()
        builder.popen.communicate()
