"""What can go wrong, typed by the boundary it crossed.

Every error that a user can cause or cure is a `SeatrialError`: it says what happened, where, what would have
been allowed, and the command or edit that cures it. The command line prints it without a traceback and exits
with its `exit_code`: 2 when the input was wrong, 1 when the work ran and fell short. Anything else that
escapes is a defect of ours and keeps its traceback.
"""


class SeatrialError(Exception):
    """The work was understood, was tried, and fell short."""

    exit_code = 1

    def __init__(self, message: str, *, cure: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure
        """What the user should do now; empty when the message already says it."""
        self.detail = detail
        """Evidence that is too long for the message, such as the tail of a log."""


class BadInput(SeatrialError):
    """What the user gave cannot be worked on: a file, a flag, a key, a name."""

    exit_code = 2


class ConfigError(BadInput):
    """A configuration file is missing, unreadable, or says something it may not say."""


class RunInUse(BadInput):
    """Another live process holds the run directory."""


class MissingPart(BadInput):
    """A part that this command needs is not installed on this machine."""


class SetupError(SeatrialError):
    """A step of making an environment failed."""


class EngineError(SeatrialError):
    """An inference engine did not start, or died more often than it may."""


class ServerError(SeatrialError):
    """A server could not be reached, or answered something other than what its protocol says."""


class AdapterRefused(BadInput):
    """The gate found an adapter unfit for its base model or its server."""
