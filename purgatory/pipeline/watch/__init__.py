"""What `watch` does: windows of a growing journal, control charts, and notices about both."""
