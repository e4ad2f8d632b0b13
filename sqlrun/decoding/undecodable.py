"""The error of a file or a message that isn't of its format. Pure."""

from __future__ import annotations

from sqlrun.errors import EngineError


class Undecodable(EngineError):
    """A file or a message that isn't of its format as a whole; nothing of it lands. `reason` doesn't name it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[Undecodable], tuple[str]]:
        """Return what builds the error again: Spark's executors send it to the driver."""
        return type(self), (self.reason,)
