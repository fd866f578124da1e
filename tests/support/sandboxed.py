"""A pytest plugin, loaded before pytest captures output: the run goes on in a sandbox with a network of its own."""

from support import sandbox

sandbox.enter()
