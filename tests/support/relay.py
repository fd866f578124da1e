"""A cable that can lose all that boards send, while what the computer sends arrives, and that can copy, delay and add frames."""

import contextlib
import heapq
import json
import select
import socket
import subprocess
import threading
import time

from support.netns import Bench, sh
from support.paths import VECTORS

ALL = 3  # ETH_P_ALL
C, C1 = (json.loads((VECTORS / f"{name}.json").read_text())["constants"] for name in ("fade10g", "fade1"))


class Relayed(Bench):
    """feb0 and eth0 as in a Bench, with a relay between them.

    rule: what happens to a frame; it is called with (it comes from the board, the frame): a list of (seconds from now, it goes to the
    computer, the frame).
    """

    def build(self):
        self.rule = lambda up, frame: [(0, up, frame)]
        self.relay_ns, self.is_deaf, self.is_over = f"{self.board_ns}-relay", False, False
        for namespace in (self.board_ns, self.pc_ns, self.relay_ns):
            sh("ip", "netns", "add", namespace)
        for namespace, name, inside in [(self.board_ns, "feb0", "board"), (self.pc_ns, "eth0", "computer")]:
            sh("ip", "link", "add", name, "netns", namespace, "type", "veth", "peer", "name", inside, "netns", self.relay_ns)
            for where, what in [(namespace, name), (self.relay_ns, inside)]:
                sh("ip", "netns", "exec", where, "sysctl", "-qw", f"net.ipv6.conf.{what}.disable_ipv6=1")
                sh("ip", "-n", where, "link", "set", what, "mtu", 9000, "promisc", "on", "up")
        sockets = [self.in_namespace(self.relay_ns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))) for _ in range(2)]
        for one, name in zip(sockets, ["board", "computer"]):
            one.bind((name, ALL))
        self.relay = threading.Thread(target=self.relays, args=sockets)
        self.relay.start()

    def relays(self, board, computer):
        late, order = [], 0
        with contextlib.closing(board), contextlib.closing(computer):
            while not self.is_over:
                wait = min(0.05, max(0, late[0][0] - time.monotonic())) if late else 0.05
                for one in select.select([board, computer], [], [], wait)[0]:
                    frame, address = one.recvfrom(10000)
                    if address[2] != socket.PACKET_OUTGOING and not (one is board and self.is_deaf):
                        for delay, up, what in self.rule(one is board, frame):
                            if delay:
                                order += 1
                                heapq.heappush(late, (time.monotonic() + delay, order, up, what))
                            else:
                                (computer if up else board).send(what)
                while late and late[0][0] <= time.monotonic():
                    _, _, up, what = heapq.heappop(late)
                    (computer if up else board).send(what)

    def close(self):
        self.is_over = True
        with contextlib.suppress(AttributeError):
            self.relay.join()
        super().close()
        subprocess.run(["ip", "netns", "delete", self.relay_ns], capture_output=True)


def permit_of(frame):
    """What a START shows; None: it is another frame."""
    number = lambda at, size: int.from_bytes(frame[at : at + size], "big")
    if frame[12:16] == b"\xfa\xde\x01\x00" and number(16, 2) == C["CMD_START"] and number(20, 4) & C["START_PERMIT"]:
        return number(20, 4) >> C["PERMIT_SHIFT"]
    if frame[12:16] == b"\xfa\xde" + C1["TYPE_START"].to_bytes(2, "big") and number(18, 2) == C1["PERMIT_MARK"]:
        return number(20, 4)
    return None


class Obeyed:
    """All that the board sends is lost, from the first START with a permit to `until`, which the test calls."""

    def __init__(self, cable):
        self.starts, self.is_deaf = [], False
        cable.rule = self.rule

    def rule(self, up, frame):
        if not up and permit_of(frame):
            self.starts.append(frame)
            self.is_deaf |= len(self.starts) == 1
        return [] if up and self.is_deaf else [(0, up, frame)]

    def until(self):
        self.is_deaf = False
