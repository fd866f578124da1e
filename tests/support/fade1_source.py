"""A board with FADE v1 in software, whose words are those of a list: this is a program for the namespace of the boards.

fade1_source.py INTERFACE MAC (tells | tells-not) WORDS: it tells the CRC of its words, and so its filler, or not. WORDS is JSON.
"""

import json
import socket
import sys
import time
import zlib

LOOK = 0.02  # seconds between two repetitions


class Source:
    def __init__(self, raw, mac, tells, words):
        self.raw, self.mac, self.tells = raw, mac, tells
        self.data = b"".join(word.to_bytes(8, "little") for word in words)
        self.reset()

    def reset(self):
        self.state, self.number, self.packets, self.acked = 0, 0, [], set()

    def send(self, to, fields, length):
        self.raw.send((to + self.mac + b"\xfa\xde" + fields).ljust(length, b"\xa5"))

    def answer(self, to):
        if self.state == 2 and len(self.acked) == len(self.packets):
            self.state = 3
        numbers = self.state.to_bytes(2, "big") + self.number.to_bytes(2, "big") + len(self.packets).to_bytes(4, "big")
        fields = b"\xa5\x5a" + numbers + b"\x01\x00" + bytes(6)
        if self.tells and self.state == 3:
            fields += b"\xc4\xec" + (len(self.data) // 8 % 128).to_bytes(2, "big") + zlib.crc32(self.data).to_bytes(4, "big")
        self.send(to, fields, 64)

    def take(self, frame):
        """A frame for the board."""
        to, kind = frame[6:12], int.from_bytes(frame[14:16], "big")
        if kind == 5:
            self.reset()
        elif kind == 1:
            if self.state in (0, 3):
                self.reset()
                self.state, self.number, self.computer = 1, int.from_bytes(frame[16:18], "big"), to
                self.packets = [self.data[at : at + 1024] for at in range(0, len(self.data) // 1024 * 1024, 1024)]
            self.answer(to)
        elif kind == 2 and self.state:
            if self.state == 1:
                self.state = 2
                if rest := self.data[len(self.packets) * 1024 :]:
                    self.packets.append(rest.ljust(1024, b"\xa5"))
            self.answer(to)
        elif kind == 3:
            self.acked.add(int.from_bytes(frame[16:18], "big") * 32 + (frame[18] >> 2))

    def repeat(self):
        """Sends what is not confirmed, of a set and no more."""
        waiting = [i for i in range(len(self.packets)) if i not in self.acked]
        for i in [i for i in waiting if i < waiting[0] + 32]:
            place = (i // 32).to_bytes(2, "big") + (i % 32 << 10 | 0x2A5).to_bytes(2, "big")
            self.send(self.computer, b"\xa5\xa5" + place + bytes(4) + self.packets[i], 1048)


def main():
    interface, mac, tells, words = sys.argv[1:]
    mac = bytes.fromhex(mac.replace(":", ""))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0xFADE)) as raw:
        raw.bind((interface, 0xFADE))
        raw.settimeout(LOOK)
        source = Source(raw, mac, tells == "tells", json.loads(words))
        print("ready", flush=True)
        next_time = 0
        while True:
            try:
                frame = raw.recv(2000)
            except TimeoutError:
                frame = b""
            if frame[:6] == mac:
                source.take(frame)
            if time.monotonic() >= next_time:
                next_time = time.monotonic() + LOOK
                source.repeat()


if __name__ == "__main__":
    main()
