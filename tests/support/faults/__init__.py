"""What can go wrong around Fadelink: a function for each fault, which brings it about at a random moment and counts what of the
promised data is there afterwards. `tests/system/test_faults.py` runs each once, `tools/soak.py` for as long as you like;
docs/reliability.md has the figures.
"""

# In the order of docs/reliability.md, which is that of FAULTS.
# isort: off
from support.faults import programs, disks, network, computer, anything, kafka, kafka_anything, topics_anything  # noqa: F401
# isort: on

from support.faults.site import BROKER, FAULTS, Outcome, Site, environment

__all__ = ["BROKER", "FAULTS", "Outcome", "Site", "environment"]
