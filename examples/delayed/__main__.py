"""``python -m examples.delayed``."""

import sys

from examples.delayed.command import main

if __name__ == "__main__":
    sys.exit(main())
