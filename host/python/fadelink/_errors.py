"""What can go wrong with receivers and FEBs. All are `Error`; the class says what kind it is, the text what to do."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "AbortedError",
    "BlockHeldError",
    "BlockReleasedError",
    "ClosedError",
    "CommandCodeError",
    "CommandsHeldError",
    "ConfigError",
    "Error",
    "FailedError",
    "ForkedError",
    "HeldError",
    "Holder",
    "NoAnswerError",
    "NoCommandsError",
    "NotRunningError",
    "NotSentError",
    "OperatingSystemError",
    "RefusedError",
    "RunningError",
]


class Error(Exception):
    """Anything that fails with a receiver or a FEB."""


class ClosedError(Error, ValueError):
    """The receiver or the FEB is closed, or was closed by another thread meanwhile."""


class ForkedError(Error, RuntimeError):
    """The receiver or the FEB is one of the process that this one was forked from. Open your own here."""


class ConfigError(Error, ValueError):
    """A setting or another argument is not as it should be."""


class CommandCodeError(ConfigError):
    """A code that is not that of a command."""

    code: int | None = None


class OperatingSystemError(Error, OSError):
    """The operating system refuses; `errno` says why. Also PermissionError, FileNotFoundError and so on, where it is one."""

    def __reduce__(self) -> tuple[object, ...]:
        return of_system, (self.errno, self.strerror)


class NoAnswerError(Error, TimeoutError):
    """The FEB has not answered. It may have executed the command, and its answers may be lost."""

    #: Of the command.
    code: int | None = None
    #: Frames that were sent.
    attempts: int | None = None


class NotSentError(NoAnswerError):
    """The FEB has not answered IDENTIFY, so the command was not sent."""


class Holder(NamedTuple):
    """A program that has what another one wants."""

    #: Its process.
    pid: int
    #: Its name; None: it is this program.
    name: str | None


class HeldError(Error, RuntimeError):
    """The FEB is open already, in another program of this computer or in this one."""

    _holder: tuple[int | None, str | None] = (None, None)

    @property
    def holder(self) -> Holder | None:
        """Who has it; None: it has not told."""
        pid, name = self._holder
        return None if pid is None else Holder(pid, name)


class CommandsHeldError(HeldError):
    """Another program of this computer keeps sending commands to the FEB."""


class RefusedError(Error, RuntimeError):
    """The FEB does not do it in the state that it is in."""


class RunningError(RefusedError):
    """The FEB still runs an earlier transmission, in spite of RESET."""

    #: What it has answered to START; None: it sends data all the same.
    status: int | None = None


class NotRunningError(RefusedError):
    """The FEB does not run the transmission that was to go on."""


class NoCommandsError(RefusedError):
    """The FEB has no user commands, because it speaks FADE v1."""

    code: int | None = None


class AbortedError(Error, RuntimeError):
    """The transmission has ended before its end."""

    #: As `Feb.ending` tells it.
    ending: str | None = None
    #: Address of the computer that sent RESET, if it is known.
    reset_by: str | None = None


class FailedError(Error, RuntimeError):
    """The interface has failed, or was removed."""


class BlockHeldError(Error, BufferError):
    """A block is still held."""


class BlockReleasedError(Error, BufferError):
    """The block was released, and its bytes are no longer there."""


for _name in __all__:
    globals()[_name].__module__ = "fadelink"

_of_system: dict[type[OSError], type[OperatingSystemError]] = {OSError: OperatingSystemError}


def of_system(errno: int, text: str) -> OperatingSystemError:
    """An error of the operating system, which is also the one that Python has for its number."""
    known = type(OSError(errno, text))
    if known not in _of_system:
        names = {"__module__": "fadelink", "__doc__": OperatingSystemError.__doc__}
        _of_system[known] = type(OperatingSystemError.__name__, (OperatingSystemError, known), names)
    return _of_system[known](errno, text)
