#!/usr/bin/env python3
"""`make demo`: `fadelink demo` with a cable of its own, in a sandbox; nothing of it stays on the computer."""

import argparse
import subprocess
import sys
from pathlib import Path

from support import sandbox
from support.netns import sh
from support.paths import BUILD, TOP

NEXT = """
Where to go on
  make demo-fadc     two crates of FADC modules, their events on a page with live plots
  make sim host      all simulated boards and the whole command; then try `fadelink --help`
  README.md          the five systems, how to install, and quick starts
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="time that the boards send: 20")
    parser.add_argument("--simulator", type=Path, default=BUILD / "demo/sim/fadelink-sim", help="the simulated boards")
    parser.add_argument("--command", type=Path, default=TOP / "host/target/demo/fadelink", help="the fadelink command")
    args = parser.parse_args()
    sandbox.enter(root=True)
    sh("ip", "link", "add", "feb0", "mtu", 9000, "type", "veth", "peer", "name", "eth0", "mtu", 9000)
    for name in ("feb0", "eth0"):
        sh("ip", "link", "set", name, "addrgenmode", "none", "up")
    words = [args.command, "demo", "--iface", "eth0", "--boards-iface", "feb0", "--simulator", args.simulator, "--seconds", args.seconds]
    try:
        status = subprocess.run([str(word) for word in words]).returncode
    finally:
        sh("ip", "link", "delete", "feb0")
    print(NEXT, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
