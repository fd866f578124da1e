"""A cable that can lose all that boards send, while what the computer sends arrives."""

import contextlib
import select
import socket
import subprocess
import threading

from support.netns import Bench, sh

ALL = 3  # ETH_P_ALL


class Relayed(Bench):
    """feb0 and eth0 as in a Bench, with a relay between them."""

    def build(self):
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
        with contextlib.closing(board), contextlib.closing(computer):
            while not self.is_over:
                for one in select.select([board, computer], [], [], 0.05)[0]:
                    frame, address = one.recvfrom(10000)
                    if address[2] != socket.PACKET_OUTGOING and not (one is board and self.is_deaf):
                        (computer if one is board else board).send(frame)

    def close(self):
        self.is_over = True
        with contextlib.suppress(AttributeError):
            self.relay.join()
        super().close()
        subprocess.run(["ip", "netns", "delete", self.relay_ns], capture_output=True)
