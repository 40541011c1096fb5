"""A small file of text that is replaced as a whole."""

from pathlib import Path


class CheckpointFile:
    """Text that outlives the process (Kafka's CheckpointFile, without its format and its sync).

    A process that is killed while it writes leaves the old text or the new one, and no mixture.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<CheckpointFile {self.path}>"

    def read(self) -> str | None:
        """Return the text; None before the first write. Raises OSError."""
        try:
            return self.path.read_text()
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Replace the text. Raises OSError, and then the old one is there."""
        new = self.path.with_name(f".{self.path.name}")
        new.write_text(text)
        new.replace(self.path)
