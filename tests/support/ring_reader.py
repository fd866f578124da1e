"""A reader of the shared ring in another process (docs/sinks.md): every word must be the counter's.

Usage: ring_reader.py SOCKET [MILLISECONDS_A_BLOCK] [BLOCKS]   prints the number of words; BLOCKS: leaves early

At the first block it says `reading` on standard error.
"""

import mmap
import socket
import struct
import sys
import time

import numpy as np


def blocks(path):
    """Each block as an array of words, in place; it is given back when the next one is asked for."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(path)
    hello, (fd,), _, _ = socket.recv_fds(server, 24, 1)
    magic, version, size = struct.unpack("<8sQQ", hello)
    assert (magic, version) == (b"FADERING", 1)
    try:
        mmap.mmap(fd, size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        raise AssertionError("the ring can be written to")
    except PermissionError:
        pass
    ring = np.frombuffer(mmap.mmap(fd, size, prot=mmap.PROT_READ), dtype="<u8")
    while True:
        offset, length = struct.unpack("<QQ", server.recv(16))
        if length == 0:
            server.send(struct.pack("<Q", 0))
            assert offset == 1, "the transmission was not complete"
            return
        first, words = offset // 8, length // 8
        here = min(words, size // 8 - first)
        yield ring[first : first + here]
        if here < words:
            yield ring[: words - here]
        server.send(struct.pack("<Q", length))


def main():
    pause = float(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 0
    limit = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 62
    expected = None
    total = 0
    for number, block in enumerate(blocks(sys.argv[1])):
        if expected is None:
            expected = int(block[0])
            print("reading", file=sys.stderr, flush=True)
        assert (block == np.arange(expected, expected + len(block), dtype="u8")).all(), expected
        expected += len(block)
        total += len(block)
        time.sleep(pause)
        if number >= limit:
            break
    print(total)


if __name__ == "__main__":
    main()
