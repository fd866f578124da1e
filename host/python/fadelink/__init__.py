"""Detector data from front-end boards (FEBs), in place and without loss.

    with fadelink.Receiver("eth1") as receiver, receiver.open("02:fa:de:00:00:01") as feb:
        feb.start()
        for words in feb.blocks():     # numpy arrays of native 64-bit words, views of the ring
            histogram += numpy.bincount(words & 0xfff, minlength=4096)

A block returns to the ring when the loop asks for the next one, so copy what you want to keep: an array that you keep
shows later data. While you hold a block the ring fills, and then the board waits: nothing is lost.

`fadelink.Run` reads a run that `fadelink run` has written, and `fadelink.runs` all runs of a folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _fadelink
from ._runs import Board, Crates, Message, Run, RunWarning, jagged, runs

__all__ = ["Block", "Board", "Crates", "Feb", "Inquiry", "Message", "Receiver", "Run", "RunWarning", "jagged", "runs"]

#: Default threshold in bytes: few wake-ups, and much less than the ring.
THRESHOLD = 32 * 8192


class Receiver:
    """Receives from the FEBs behind `interface`.

    backend: "packet" (AF_PACKET), "xdp" (AF_XDP) or "kernel" (the driver). Raises OSError if it is not available.
    """

    def __init__(self, interface: str, backend: str = "packet", busy_poll: bool = False):
        self._receiver = _fadelink.Receiver(interface, backend, busy_poll)

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

        protocol: "fade10g" or "fade1"; default: start() finds it out. The data of FADE v1 ends with filler, 0xA5.
        firmware: "fadelink", "published-10g" or "published-v1"; default: start() finds it out.
        word_order: "big" or "little", on the wire; default: that of the firmware. Arrays have native words.
        Raises ValueError for a setting out of range, RuntimeError if another program has the FEB.
        """
        what = (protocol, firmware, word_order)
        return Feb(self._receiver.open(mac, ring_packets, window, first_packet, what))

    def counters(self) -> dict[str, int]:
        """Counters of frames that belong to no open FEB, by name."""
        return self._receiver.counters()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        del self._receiver


class Feb:
    """An open FEB. Leaving its `with` closes it, and sends RESET if its transmission is running."""

    def __init__(self, feb: _fadelink.Feb):
        self._feb = feb

    def start(self) -> None:
        """START: the next block begins with the first word. TimeoutError without an answer."""
        self._feb.start()

    def stop(self) -> None:
        """STOP: the packet that is being filled becomes the last. Continue to read until the end."""
        self._feb.stop()

    def reset(self) -> None:
        """RESET: aborts the transmission."""
        self._feb.reset()

    def command(self, code: int, argument: int = 0, timeout: float | None = None, retries: int | None = None) -> int:
        """Sends a user command, returns the 64-bit value of its response.

        A Fadelink FEB executes it exactly once, a published core executes each repetition. timeout: seconds from each
        attempt to the next. Raises TimeoutError without a response.
        """
        return self._feb.command(code, argument, timeout, retries)

    def counters(self) -> dict[str, int]:
        """Counters of the FEB, by name."""
        return self._feb.counters()

    def kind(self) -> tuple[str | None, str | None, str | None]:
        """(protocol, firmware, byte order of words on the wire), found out by start(); None if unknown."""
        return self._feb.kind()

    def ending(self) -> str | None:
        """How the end of the transmission is known; None before the end.

        "confirmed": the board told it. "silence": the board is silent after STOP, as one that has lost its power; the published
        core of FADE v1 tells no more. After an error also "reset", "switched-off", "other-number" and
        "other-transmission": what the board told.
        """
        return self._feb.ending()

    def inquire(self) -> Inquiry:
        """Asks the FEB what it says of its transmission, and for RESETs, which any computer may have sent.

        Raises TimeoutError without an answer.
        """
        return Inquiry(*self._feb.inquire())

    def against(self) -> list[str]:
        """Asks the FEB, and tells what speaks against the data after the last block. An empty list: it is whole.

        Raises TimeoutError without an answer.
        """
        return self._feb.against()

    def fill(self) -> tuple[int, int]:
        """Bytes in the ring, and its size."""
        return self._feb.fill()

    def fileno(self) -> int:
        """An event descriptor, readable when there is something to read."""
        return self._feb.fileno()

    def read(self, threshold: int = THRESHOLD, timeout: float | None = None) -> Block | None:
        """The next block, for use with `with`; its value is an array of words. None at the end.

        Waits for `threshold` bytes or the end, at most `timeout` seconds; then the array may be empty. Ctrl-C ends the
        wait. Other threads may read counters, send commands and reset meanwhile.
        Raises RuntimeError when the transmission was aborted.
        """
        block = self._feb.read(threshold, timeout)
        return None if block is None else Block(block, self.kind()[1])

    def blocks(self, threshold: int = THRESHOLD, timeout: float | None = None) -> Iterator[npt.NDArray[Any]]:
        """All blocks until the end of the transmission; each returns to the ring when the next one is requested."""
        while (block := self.read(threshold, timeout)) is not None:
            with block as words:
                yield words

    async def blocks_async(self, threshold: int = THRESHOLD) -> AsyncIterator[npt.NDArray[Any]]:
        """Like `blocks`, for asyncio: other tasks run while it waits."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._feb.arm(threshold):
                ready: asyncio.Future[None] = loop.create_future()
                loop.add_reader(self.fileno(), _finish, ready)
                try:
                    # What is there is taken after a while though it is less than the threshold.
                    await asyncio.wait_for(ready, 0.05)
                except TimeoutError:
                    break
                finally:
                    loop.remove_reader(self.fileno())
            block = self.read(1, 0)
            if block is None:
                return
            with block as words:
                if len(words):
                    yield words

    def __enter__(self) -> Feb:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        del self._feb


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


class Block:
    """Words in the ring, for reading, until the end of its `with`."""

    def __init__(self, block: _fadelink.Block, firmware: str | None):
        self._block = block
        self._type = "u4" if firmware == "published-v1" else "u8"
        self._words: npt.NDArray[Any] | None = None

    def __enter__(self) -> npt.NDArray[Any]:
        self._words = np.frombuffer(self._block, self._type) if len(self._block) else np.empty(0, self._type)  # type: ignore[call-overload]
        return self._words

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._words = None
        self._block.release()
