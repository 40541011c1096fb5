"""The errors of the pipeline that its user can fix."""

from typing import Final

from purgatory import PurgatoryError

# A part of messages.
INSTALL: Final = "pip install 'asyncio-purgatory[spark]'"


class PipelineError(PurgatoryError):
    """Raised when a command cannot run. The message names the file or the setting, and the fix."""


class UsageError(PipelineError):
    """Raised when the arguments of a command do not fit together. The message names the arguments."""


class JavaMissingError(PipelineError):
    """Raised when there is no Java that Spark can run on."""
