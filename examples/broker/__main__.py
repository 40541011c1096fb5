"""``python -m examples.broker``."""

import sys

from examples.broker.command import main

if __name__ == "__main__":
    sys.exit(main())
