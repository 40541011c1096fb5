"""``python -m purgatory.pipeline`` is ``purgatory-pipeline``."""

import sys

from purgatory.pipeline.command import main

sys.exit(main())
