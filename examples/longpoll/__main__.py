"""Runs the command: ``python -m examples.longpoll``."""

import sys

from examples.longpoll.command import main

if __name__ == "__main__":
    sys.exit(main())
