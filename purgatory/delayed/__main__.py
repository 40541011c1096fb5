"""Lists what is pending in a directory of delayed messages: ``python -m purgatory.delayed PATH``."""

import sys

from purgatory.delayed.inspect.command import main

sys.exit(main())
