"""`make steady` counts how often a test fails, and how."""

import os
import subprocess
import sys

import pytest
from support import sandbox
from support.netns import PATIENCE
from support.paths import TOP

TESTS = """
import os

SEED = int(os.environ["FADELINK_SEED"])

def test_that_is_steady():
    pass

def test_that_fails_every_second_time():
    assert SEED % 2, f"seed {SEED % 4} of four"
"""


def steady(tmp_path, only, rounds):
    environment = os.environ | {"FADELINK_SEED": "100", "PYTEST_ADDOPTS": f"--basetemp={tmp_path / 'files'}"}
    words = [sys.executable, TOP / "tests/steady.py", "--rounds", rounds, "--only", only, "--load", 1, "--log", tmp_path / "log"]
    before = set(sandbox.descendants())
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert set(sandbox.descendants()) <= before, "the load has ended"
    return done


@pytest.fixture
def tests(tmp_path):
    file = tmp_path / "test_made_up.py"
    file.write_text(TESTS)
    return file


def test_an_unsteady_test_is_counted(tests, tmp_path):
    done = steady(tmp_path, tests, 3)
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done
    assert [line.split(",")[1] for line in lines[:3]] == [f" FADELINK_SEED={seed}: 2 tests" for seed in range(100, 103)]
    name, *messages, last = lines[3:]
    assert name.endswith("test_that_fails_every_second_time: 2 of 3 failed")
    assert messages == ["  1 x AssertionError: seed 0 of four (FADELINK_SEED 100)", "  1 x AssertionError: seed 2 of four (FADELINK_SEED 102)"]
    assert last == "3 of 3 rounds, 1 unsteady tests"


def test_steady_tests_pass(tests, tmp_path):
    done = steady(tmp_path, f"{tests}::test_that_is_steady", 2)
    assert done.returncode == 0 and done.stdout.endswith("\n2 of 2 rounds, 0 unsteady tests\n"), done


def test_a_run_without_tests_is_no_success(tests, tmp_path):
    done = steady(tmp_path, f"{tests}::test_that_is_not_there", 2)
    assert done.returncode == 1 and "0 of 2 rounds" in done.stdout, done
