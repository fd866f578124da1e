"""Layouts of the endpoints, and their signals as the structures of rtl/common/link_pkg.sv."""

from migen import Cat, Signal

# The user's words.
WORDS = [("data", 64)]
# A user command of FADE-10G, and its answer.
COMMAND = [("code", 16), ("csn", 16), ("argument", 32)]
RESPONSE = [("value", 64)]
# What the MAC found wrong in the frames that came: a bit each for error, runt, oversize, bad FCS.
MAC_STATS = 4


def frames(width):
    """Frames without preamble and frame check sequence, 8 or 64 bits a clock; `error` at the end of a bad one."""
    return [("data", width), ("keep", width // 8), ("error", 1)]


def words_struct(endpoint):
    """link_pkg::words_t."""
    return Cat(endpoint.last, endpoint.valid, endpoint.data)


def command_struct(endpoint):
    """link_pkg::command_t."""
    return Cat(endpoint.valid, endpoint.argument, endpoint.csn, endpoint.code)


def response_struct(endpoint):
    """link_pkg::response_t."""
    return Cat(endpoint.valid, endpoint.value)


def frame_struct(endpoint):
    """link_pkg::frame_t, whose unused lanes are ignored."""
    width = len(endpoint.data)
    data, keep = [endpoint.data], [endpoint.keep]
    if width < 64:
        data.append(Signal(64 - width))
        keep.append(Signal((64 - width) // 8))
    return Cat(endpoint.error, endpoint.last, endpoint.valid, *keep, *data)
