"""``python -m examples.broker.simulator``"""

import sys

from examples.broker.simulator.command import main

sys.exit(main())
