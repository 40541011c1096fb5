"""What is on the disk. Nothing here knows an event loop."""
