"""One virtual machine for all tests, with boards of their own; after a failure the next test boots another."""

import pytest
from support.guest import Guest
from support.netns import Bench


class Machine:
    """The namespace of the boards and the guest on its TAP."""

    def __init__(self, make_folder):
        self.make_folder, self.bench = make_folder, None

    def booted(self):
        if self.bench is None:
            self.bench = Bench(self.make_folder("guest"))
            self.bench.guest = Guest(self.bench)
        return self.bench

    def close(self):
        if self.bench is not None:
            if hasattr(self.bench, "guest"):
                self.bench.guest.close()
            self.bench.close()
            self.bench = None


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp)
    yield machine
    machine.close()


@pytest.fixture
def bench(machine, tmp_path):
    """Namespaces as those of the system tests, with the virtual machine on `fade0` as `bench.guest`."""
    bench = machine.booted()
    bench.tmp = tmp_path
    yield bench
    bench.end_processes()
    if bench.guest.spoilt or bench.guest.running is not False:
        machine.close()
