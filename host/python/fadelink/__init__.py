"""Detector data from front-end boards (FEBs), in place and without loss.

    with fadelink.Receiver("eth1") as receiver, receiver.open("02:fa:de:00:00:01") as feb:
        feb.start()
        for words in feb.blocks():     # numpy arrays of native 64-bit words, views of the ring
            histogram += numpy.bincount(words & 0xfff, minlength=4096)

A block returns to the ring when the loop asks for the next one, so copy what you want to keep: an array that you keep
shows later data. While you hold a block the ring fills, and then the board waits: nothing is lost.

Leaving `with` closes the board, by RESET if its transmission is running: at the end, after an exception and after Ctrl-C,
whatever is kept. Arrays that you keep stay readable. Without `with` call `close()`; what nobody has any more, and what is
open when Python ends, is closed, too. A forked process has nothing of it: it opens its own.

All errors are `fadelink.Error`, with a class for each kind.

`fadelink.Run` reads a run that `fadelink run` has written, and `fadelink.runs` all runs of a folder.
"""

from __future__ import annotations

import asyncio
import atexit
import operator
import os
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _fadelink
from ._errors import (
    AbortedError,
    BlockHeldError,
    BlockReleasedError,
    ClosedError,
    CommandCodeError,
    CommandsHeldError,
    ConfigError,
    Error,
    FailedError,
    ForkedError,
    HeldError,
    Holder,
    NoAnswerError,
    NoCommandsError,
    NotRunningError,
    NotSentError,
    OperatingSystemError,
    RefusedError,
    RunningError,
)
from ._runs import Board, Crates, Message, Run, RunWarning, jagged, runs

__all__ = [
    "AbortedError",
    "Block",
    "BlockHeldError",
    "BlockReleasedError",
    "Board",
    "ClosedError",
    "CommandCodeError",
    "CommandsHeldError",
    "ConfigError",
    "Crates",
    "Error",
    "FailedError",
    "Feb",
    "Filler",
    "ForkedError",
    "HeldError",
    "Holder",
    "Inquiry",
    "Message",
    "NoAnswerError",
    "NoCommandsError",
    "NotRunningError",
    "NotSentError",
    "OperatingSystemError",
    "Receiver",
    "RefusedError",
    "Run",
    "RunWarning",
    "RunningError",
    "jagged",
    "runs",
]

#: Default threshold in bytes: few wake-ups, and much less than the ring.
THRESHOLD = 32 * 8192

atexit.register(_fadelink.close_all)


def _integer(name: str, value: int) -> int:
    """An argument that is an integer, also one of numpy."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} {value!r}: expected an integer") from None


def _check(name: str, value: int, bits: int) -> None:
    """An argument that is a number of so many bits."""
    if not 0 <= _integer(name, value) < 1 << bits:
        raise ConfigError(f"{name} {value}: expected 0 to {(1 << bits) - 1}")


class Receiver(_fadelink.Receiver):
    """Receives from the FEBs behind `interface`, until `close()` or the end of its `with`, which close its FEBs, too.

    backend: "packet" (AF_PACKET), "xdp" (AF_XDP) or "kernel" (the driver). Raises OperatingSystemError (OSError) if it is not
    available.
    """

    def open(
        self,
        mac: str,
        ring_packets: int = 2048,
        window: int = 64,
        first_packet: int = 0,
        protocol: str | None = None,
        firmware: str | None = None,
        word_order: str | None = None,
    ) -> Feb:
        """Opens a FEB exclusively for its data.

        protocol: "fade10g" or "fade1"; default: start() finds it out.
        firmware: "fadelink", "published-10g" or "published-v1"; default: start() finds it out.
        word_order: "big" or "little", on the wire; default: that of the firmware. Arrays have native words.
        Raises ConfigError (ValueError) for a setting out of range, HeldError (RuntimeError) if another program has the FEB.
        """
        what = (protocol, firmware, word_order)
        for name, value, bits in (("ring_packets", ring_packets, 64), ("window", window, 32), ("first_packet", first_packet, 32)):
            _check(name, value, bits)
        return Feb(self, mac, ring_packets, window, first_packet, what)

    def counters(self) -> dict[str, int]:
        """Counters of frames that belong to no open FEB, by name."""
        return self._counters()


class Feb(_fadelink.Feb):
    """An open FEB; see `Receiver.open`. `close()` and the end of its `with` close it, and send RESET if its transmission is running.

    Its methods raise ClosedError (ValueError) then, also those that wait in other threads. Arrays that are kept stay readable.
    """

    def start(self) -> None:
        """START: the next block begins with the first word.

        Raises NoAnswerError (TimeoutError) without an answer, RunningError if an earlier transmission cannot be ended.
        """
        self._start()

    def stop(self) -> None:
        """STOP: the packet that is being filled becomes the last. Continue to read until the end.

        Raises NoAnswerError (TimeoutError) without an answer.
        """
        self._stop()

    def reset(self) -> None:
        """RESET: aborts the transmission."""
        self._reset()

    def command(self, code: int, argument: int = 0, timeout: float | None = None, retries: int | None = None) -> int:
        """Sends a user command, returns the 64-bit value of its response.

        A Fadelink FEB executes it exactly once, a published core executes each repetition. timeout: seconds from each
        attempt to the next. Raises NoAnswerError (TimeoutError) without a response, and NotSentError, which is one, if it was not sent;
        CommandCodeError (ValueError) for a code that is not a command; NoCommandsError if the FEB speaks FADE v1; CommandsHeldError
        if another program keeps sending commands.
        """
        if not 0 <= _integer("code", code) < 1 << 16:
            error = CommandCodeError(f"command {code:#x}: expected 0 to 0xffff")
            error.code = code
            raise error
        for name, value in (("argument", argument), ("retries", retries or 0)):
            _check(name, value, 32)
        return self._command(code, argument, timeout, retries)

    def counters(self) -> dict[str, int]:
        """Counters of the FEB, by name."""
        return self._counters()

    def kind(self) -> tuple[str | None, str | None, str | None]:
        """(protocol, firmware, byte order of words on the wire), found out by start(); None if unknown."""
        return self._kind()

    def ending(self) -> str | None:
        """How the end of the transmission is known; None before the end.

        "confirmed": the board told it. "silence": the board is silent after STOP, as one that has lost its power; the published
        core of FADE v1 tells no more. After an error also "reset", "switched-off", "other-number" and
        "other-transmission": what the board told.
        """
        return self._ending()

    def filler(self) -> Filler:
        """What follows the last word in the last packet, behind the last block.

        Fadelink's core of FADE v1 fills its last packet up with 0xA5. With CHECKSUM it tells how much of it is filler, which blocks leave
        out. Without, and with the kernel driver, nobody knows it: then blocks have all of it, and it is for you to say what the
        last words 0xA5 are. Other cores, also the published one of FADE v1, send no filler.
        """
        told, possible = self._filler()
        word = self._word_bytes()
        return Filler(None if told is None else told // word, possible // word)

    def inquire(self) -> Inquiry:
        """Asks the FEB what it says of its transmission, and for RESETs, which any computer may have sent.

        Raises NoAnswerError (TimeoutError) without an answer.
        """
        return Inquiry(*self._inquire())

    def against(self) -> list[str]:
        """Asks the FEB, and tells what speaks against the data after the last block. An empty list: it is whole.

        Raises NoAnswerError (TimeoutError) without an answer.
        """
        return self._against()

    def fill(self) -> tuple[int, int]:
        """Bytes in the ring, and its size."""
        return self._fill()

    def fileno(self) -> int:
        """An event descriptor, readable when there is something to read."""
        return self._fileno()

    def _word_bytes(self) -> int:
        return 4 if self._kind()[1] == "published-v1" else 8

    def read(self, threshold: int = THRESHOLD, timeout: float | None = None) -> Block | None:
        """The next block, for use with `with`; its value is an array of words. None at the end.

        Waits for `threshold` bytes or the end, at most `timeout` seconds; then the array may be empty. Ctrl-C ends the
        wait. Other threads may read counters, send commands, reset and close meanwhile.
        Raises AbortedError (RuntimeError) when the transmission was aborted, BlockHeldError (BufferError) while a block is held.
        """
        _check("threshold", threshold, 63)
        block = self._read(threshold, timeout)
        return None if block is None else Block(block, self._word_bytes())

    def blocks(self, threshold: int = THRESHOLD, timeout: float | None = None) -> Iterator[npt.NDArray[Any]]:
        """All blocks until the end of the transmission; each returns to the ring when the next one is requested."""
        while (block := self.read(threshold, timeout)) is not None:
            with block as words:
                yield words

    async def blocks_async(self, threshold: int = THRESHOLD) -> AsyncIterator[npt.NDArray[Any]]:
        """Like `blocks`, for asyncio: other tasks run while it waits."""
        _check("threshold", threshold, 63)
        loop = asyncio.get_running_loop()
        # Its own, because the FEB may be closed while the loop has it.
        descriptor = os.dup(self.fileno())
        try:
            while True:
                while not self._arm(threshold):
                    ready: asyncio.Future[None] = loop.create_future()
                    loop.add_reader(descriptor, _finish, ready)
                    try:
                        # What is there is taken after a while though it is less than the threshold.
                        await asyncio.wait_for(ready, 0.05)
                    except TimeoutError:
                        break
                    finally:
                        loop.remove_reader(descriptor)
                block = self.read(1, 0)
                if block is None:
                    return
                with block as words:
                    if len(words):
                        yield words
        finally:
            os.close(descriptor)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Inquiry(NamedTuple):
    """What a FEB says of its transmission when it is asked."""

    #: "reset", "switched-off" or "other-transmission"; None: it goes on, has ended as it should, or the FEB does not tell.
    ending: str | None
    #: RESETs that it has obeyed since start(), 255: or more; None: it does not tell.
    resets: int | None
    #: Address of the computer that sent the last of them.
    reset_by: str | None


class Filler(NamedTuple):
    """What follows the last word of a transmission."""

    #: Words of filler, which blocks leave out; None: it has not ended, or the FEB does not tell.
    words: int | None
    #: Of the last array so many last words, all bytes 0xA5, may be filler, and may be data; 0 if that is known.
    possible: int


class Block:
    """Words in the ring, for reading, until the end of its `with`."""

    def __init__(self, block: _fadelink.Block, word_bytes: int):
        self._block = block
        self._type = f"u{word_bytes}"
        self._words: npt.NDArray[Any] | None = None

    def __enter__(self) -> npt.NDArray[Any]:
        self._words = np.frombuffer(self._block, self._type) if len(self._block) else np.empty(0, self._type)  # type: ignore[call-overload]
        return self._words

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._words = None
        self._block.release()
