"""Which cases of a sweep are run when."""

import pytest


def long(*values, **options):
    """A case that `make test-long` runs, and `make test` does not."""
    return pytest.param(*values, marks=pytest.mark.long, **options)
