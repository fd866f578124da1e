"""Model of FADC streaming, bit by bit: generators, channels, windows; and a reader of messages of its own.

Numbers come from tests/vectors/fadc.json; the rules are those of docs/fadc.md.
"""

import json
import struct
from collections import namedtuple

import numpy as np

from support import paths

VECTORS = json.loads((paths.VECTORS / "fadc.json").read_text())
C = VECTORS["constants"]
PEDESTAL, THRESHOLD, GAIN_ONE = 100, 30, 1 << 14
SHAPE = np.array([24, 64, 46, 24, 11, 4, 1, 0], dtype=np.int64)
SEED_STEP, SEED_FOR_ZERO = 0x9E3779B9, 0x9E3779B9
SAMPLE_SECONDS = 4e-9

Hit = namedtuple("Hit", "module channel tick charge")  # tick: of the sample, from the beginning of the run
Pulse = namedtuple("Pulse", "module channel tick amplitude")  # tick: of its first sample
Header = struct.Struct("<IIIIIIQqq")
Message = namedtuple("Message", "source length record sec nsec words")


def slot_of(module):
    return module + 3 if module < 8 else module + 5


def rate(per_second):
    """Pulses a second as the generator's setting."""
    return int(min(per_second * SAMPLE_SECONDS, 1) * ((1 << 20) - 1) + 0.5)


def samples(count, seed, rates, noise, modules=16, channels=16):
    """(samples [count, modules * channels], pulses) of the generators; rates: one setting, or one a sample."""
    index = np.arange(modules * channels)
    number = (index // channels) * 16 + index % channels + 1
    state = (np.uint32(seed & 0xFFFFFFFF) ^ (number * SEED_STEP & 0xFFFFFFFF).astype(np.uint32)).astype(np.uint32)
    state[state == 0] = SEED_FOR_ZERO
    rates = np.broadcast_to(np.asarray(rates), (count,))
    age = np.full((2, len(index)), 7)
    amplitude = np.zeros((2, len(index)), dtype=np.int64)
    out = np.empty((count, len(index)), dtype=np.int64)
    out[0] = PEDESTAL
    pulses = []
    for n in range(count - 1):
        s = state.astype(np.int64)
        free = age == 7
        begins = ((s >> 12) < rates[n]) & (free[0] | free[1])
        dither = (s & 7) + (s >> 3 & 7) + (s >> 6 & 7) + (s >> 9 & 7) - 14
        level = (amplitude * SHAPE[age] >> 6).sum(axis=0)
        out[n + 1] = np.clip(PEDESTAL + level + (dither * noise >> 3), 0, 4095)
        height = ((s >> 6 & 63) + 1) * ((s & 63) + 1)
        first = begins & free[0]
        second = begins & ~free[0] & free[1]
        age = np.where(free, 7, age + 1)
        for place, chosen in ((0, first), (1, second)):
            age[place][chosen] = 0
            amplitude[place][chosen] = height[chosen]
        for i in np.flatnonzero(begins):
            pulses.append(Pulse(int(i) // channels, int(i) % channels, n + 2, int(height[i])))
        state = state ^ (state << np.uint32(13))
        state = state ^ (state >> np.uint32(17))
        state = state ^ (state << np.uint32(5))
    return out, pulses


def charge(total, gain=GAIN_ONE):
    return min((total * gain + (1 << 13)) >> 14, 8191) if total >= 0 else 0


def find_hits(data, channels=16, pedestal=PEDESTAL, threshold=THRESHOLD, gain=GAIN_ONE):
    """The hits of all channels; of a pulse that the samples end in, none."""
    hits = []
    level = data - pedestal
    above = level >= threshold
    edges = np.zeros_like(above)
    edges[1:] = above[1:] & ~above[:-1]
    for i in range(data.shape[1]):
        free = 0
        for n in np.flatnonzero(edges[:, i]):
            if n >= free and n + C["pulse_ticks"] <= len(data):
                free = n + C["pulse_ticks"]
                hits.append(Hit(i // channels, i % channels, int(n), charge(int(level[n:free, i].sum()), gain)))
    return hits


def read_messages(data):
    """The messages of a stream; every rule of the header is checked."""
    messages, place = [], 0
    while place < len(data):
        source, length, payload, compressed, magic, version, record, sec, nsec = Header.unpack_from(data, place)
        assert (magic, version, compressed) == (C["magic"], C["format_version"], 0)
        assert length % 8 == 0 and 0 <= length - Header.size - payload <= 4 and payload % 4 == 0 and 0 <= nsec < 10**9
        words = struct.unpack_from(f"<{payload // 4}I", data, place + Header.size)
        messages.append(Message(source, length, record, sec, nsec, words))
        place += length
        assert place <= len(data), "the stream ends inside a message"
    return messages


def read_hits(message, window_ticks):
    """((slot, channel, ticks from the begin of the window, charge)..., {(kind, slot): count}) of a message."""
    hits, flags, slot, base = [], {}, None, 0
    for word in message.words:
        if word >> 31:
            kind, count, place = word >> 15 & 0xFFFF, word >> 5 & 0x3FF, word & 31
            if kind == C["type_hits"] and place == 0:
                base, slot = base + C["slice_ticks"], None
            elif kind == C["type_hits"]:
                assert count == 0 and place in range(3, 21) and place not in (11, 12)
                slot = place
            else:
                assert (kind, place) not in flags or window_ticks > C["slice_ticks"]
                flags[kind, place] = flags.get((kind, place), 0) + count
        else:
            tick = base + (word >> 17 & 0x3FFF)
            assert slot is not None and tick < window_ticks, f"word {word:08x}"
            hits.append((slot, word >> 13 & 15, tick, word & 0x1FFF))
    return hits, flags


def hits_by_window(hits, window_ticks, windows, first=0):
    """{record: sorted hits as read_hits tells them} of a run of `windows` windows."""
    out = {first + n: [] for n in range(windows)}
    for hit in hits:
        if (n := hit.tick // window_ticks) < windows:
            out[first + n].append((slot_of(hit.module), hit.channel, hit.tick % window_ticks, hit.charge))
    return {record: sorted(found) for record, found in out.items()}


def message(source, record, hits=(), window_ns=4096, begin=1_700_000_000, words=None):
    """The bytes of a message: hits as (slot, channel, tick, charge), of windows that are no longer than a slice."""
    if words is None:
        words, last = [], None
        for slot, channel, tick, charge_ in sorted(hits):
            if slot != last:
                words.append(1 << 31 | C["type_hits"] << 15 | slot)
                last = slot
            words.append(charge_ | channel << 13 | tick << 17)
    payload = struct.pack(f"<{len(words)}I", *words)
    total = Header.size + (len(payload) + 7) // 8 * 8
    sec, nsec = divmod(begin * 10**9 + record * window_ns, 10**9)
    header = Header.pack(source, total, len(payload), 0, C["magic"], C["format_version"], record, sec, nsec)
    return (header + payload).ljust(total, b"\0")


def count_messages(data):
    """How many whole messages, or events, are one behind another."""
    count = place = 0
    while place + Header.size <= len(data):
        place += Header.unpack_from(data, place)[1]
        count += place <= len(data)
    return count


def read_event(data):
    """(header fields, messages) of an event: a message whose payload are messages."""
    source, length, payload, compressed, magic, version, record, sec, nsec = Header.unpack_from(data)
    assert (magic, version, compressed) == (C["magic"], C["event_version"], 0) and length == len(data)
    return Message(source, length, record, sec, nsec, ()), read_messages(data[Header.size : Header.size + payload])
