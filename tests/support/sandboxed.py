"""A pytest plugin, loaded before pytest captures output: the run goes on in a sandbox with a network of its own. The name by which
pytest runs a test again is in the file of results (`--junitxml`), as the property "node"."""

import os

import pytest

from support import sandbox

sandbox.enter()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    file = os.path.relpath(item.path, sandbox.PLACE)
    item.user_properties.append(("node", "::".join([file, *item.nodeid.split("::")[1:]])))
