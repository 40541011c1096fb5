"""What goes wrong in the pipeline and can be put right by who runs it."""


class PipelineError(Exception):
    """Raised when a command cannot do what it was asked. It names the file or the setting, and the fix."""


class JavaMissingError(PipelineError):
    """Raised when there is no Java that Spark can run on."""
