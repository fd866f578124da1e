"""What happens when in a try of a fault."""

import heapq
import itertools
import time

from support.netns import PATIENCE


class Schedule:
    """What happens when, in seconds from now."""

    def __init__(self):
        self.waiting, self.numbers, self.happened = [], itertools.count(), []

    def at(self, seconds, name, happen):
        heapq.heappush(self.waiting, (time.monotonic() + seconds, next(self.numbers), name, happen))

    def poll(self, everything=False):
        """Lets happen what is due, or everything at once."""
        while self.waiting and (everything or self.waiting[0][0] <= time.monotonic()):
            _, _, name, happen = heapq.heappop(self.waiting)
            self.happened.append(name)
            happen()

    def run(self, is_over):
        """Lets it happen until it is over."""
        end = time.monotonic() + PATIENCE
        while not is_over():
            assert time.monotonic() < end, f"it did not end in time; happened: {self.happened}"
            self.poll()
            time.sleep(0.01)
