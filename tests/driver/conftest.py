"""The bench of the system tests, with a TAP for the guest."""

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("system_bench", Path(__file__).parents[1] / "system/conftest.py")
system_bench = importlib.util.module_from_spec(_spec)
sys.modules["system_bench"] = system_bench
_spec.loader.exec_module(system_bench)


@pytest.fixture(scope="session")
def built():
    import guest

    guest.build()


@pytest.fixture
def bench(tmp_path, built):
    bench = system_bench.Bench(tmp_path)
    system_bench.add_tap(bench)
    yield bench
    bench.close()
