"""The places of a consumer group, asked by the protocol of Kafka (OffsetFetch, version 1). The client of Python reads on behind the end of
their metadata."""

import socket
import struct
import time
from typing import NamedTuple

from support.netns import PATIENCE

OFFSET_FETCH, VERSION = 9, 1
#: The group is being loaded, or its coordinator is not known yet (kafka.apache.org/protocol, "Error codes").
PASSING = (14, 15, 16)


class Place(NamedTuple):
    """Of a partition."""

    offset: int
    metadata: str


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def request(group, topic, partitions):
    """The bytes of a request."""
    body = text(group) + struct.pack(">i", 1) + text(topic) + struct.pack(f">i{partitions}i", partitions, *range(partitions))
    head = struct.pack(">hhi", OFFSET_FETCH, VERSION, 1) + text("tests")
    return struct.pack(">i", len(head + body)) + head + body


def read(answer):
    """{partition: Place} of an answer with one topic, and the errors of its partitions."""
    place = 4 + 4 + 2 + struct.unpack_from(">h", answer, 8)[0]
    (count,) = struct.unpack_from(">i", answer, place)
    place += 4
    found, errors = {}, set()
    for _ in range(count):
        partition, offset, length = struct.unpack_from(">iqh", answer, place)
        place += 14
        metadata = answer[place : place + max(length, 0)].decode()
        place += max(length, 0)
        errors.add(*struct.unpack_from(">h", answer, place))
        place += 2
        if offset >= 0:
            found[partition] = Place(offset, metadata)
    return found, errors - {0}


def committed(address, group, topic, partitions):
    """{partition: Place} of those that have one. The broker at `address` is the only one."""
    host, port = address.rsplit(":", 1)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.create_connection((host, int(port)), timeout=60) as connection, connection.makefile("rb") as answers:
            connection.sendall(request(group, topic, partitions))
            (size,) = struct.unpack(">i", answers.read(4))
            found, errors = read(answers.read(size))
        if not errors:
            return found
        assert errors <= set(PASSING), errors
        time.sleep(0.1)
    raise AssertionError(f"the group is not there: errors {errors}")
