"""The throttle time of responses."""

from datetime import timedelta
from typing import Final

from kio.static.primitive import i32Timedelta

# This broker has no quotas.
NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))
