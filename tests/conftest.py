"""One pytest run for all tests: files stay in build/tmp, long sweeps are left out, workers share the rest."""

import os
import resource
from pathlib import Path

import pytest
from support.paths import BUILD, SEED, TOP
from xdist.scheduler import LoadScopeScheduling

# What takes longest begins first. The tests of one virtual machine, of one broker, of one copy of the tree, and those that look at
# what others do to the sandbox, are one unit of work.
UNITS = ["driver/", "kafka", "system/test_cleanup.py", "system/test_tree.py", "system/test_board.py"]
FIRST = [
    *UNITS,
    "rtl/test_synthesis.py",
    "rtl/test_formal.py",
    "rtl/test_fadc",
    "rtl/test_tcp_core.py",
    "rtl/test_ptp.py",
    "system/test_crates",
]


# Slow tests that `make test` leaves to `make test-long`: others of their kind stay.
LONG = frozenset((Path(__file__).parent / "long.txt").read_text().splitlines())

# What the processors had done before a test.
BEGUN = pytest.StashKey[float]()


def pytest_configure(config):
    if not config.option.basetemp:
        BUILD.mkdir(exist_ok=True)
        config.option.basetemp = str(BUILD / "tmp")
    if not config.option.markexpr:
        config.option.markexpr = "not long"
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.fixture(autouse=True)
def environment():
    """A test leaves the environment as it is: the next one in the same process must not depend on it."""
    before = settings()
    yield
    assert settings() == before


def settings():
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def pytest_report_header(config):
    return f"FADELINK_SEED={SEED}"


def place(nodeid):
    """Position of a test's file in FIRST, the longest of all behind them."""
    return next((i for i, name in enumerate(FIRST) if name in nodeid), len(FIRST))


# Before pytest leaves out tests by their marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    names = {str(item.path.relative_to(TOP)) + "::" + item.nodeid.partition("::")[2]: item for item in items}
    for name in LONG & names.keys():
        names[name].add_marker(pytest.mark.long)
    if not any("::" in argument for argument in config.args):
        files = {name.partition("::")[0] for name in names}
        gone = [name for name in LONG - names.keys() if name.partition("::")[0] in files]
        if gone:
            raise pytest.UsageError(f"tests/long.txt: {gone[0]}: no such test")
    items.sort(key=lambda item: place(item.nodeid))


class Scheduling(LoadScopeScheduling):
    """Each test by itself but for UNITS, in the order of the collection."""

    def _split_scope(self, nodeid):
        return next((name for name in UNITS if name in nodeid), nodeid)


def cpu():
    """Seconds of the processors that this process, and those that it has waited for, have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.stash[BEGUN] = cpu()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "teardown":
        item.user_properties.append(("cpu", f"{cpu() - item.stash[BEGUN]:.1f}"))
    report = yield
    bench = getattr(item, "funcargs", {}).get("bench")
    if call.when == "call" and report.failed and bench:
        report.sections.append(("namespaces and programs", bench.describe()))
    return report


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)
