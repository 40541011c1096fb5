"""How long clients are told to hold back."""

from datetime import timedelta
from typing import Final

from kio.static.primitive import i32Timedelta

# There are no quotas here.
NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))
