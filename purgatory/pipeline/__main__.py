"""Makes ``python -m purgatory.pipeline`` the same as ``purgatory-pipeline``."""

import sys

from purgatory.pipeline.command import main

sys.exit(main())
