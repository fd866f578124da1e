"""Boards from pin to pin that keep a record of what they took from their source, received by the real programs, while by a seed all kinds
of things go wrong. What is called complete must be the record (docs/testing.md).
"""

# isort: off
from support.faults.anything import fade, streams  # noqa: F401
# isort: on
