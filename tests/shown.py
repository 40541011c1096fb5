"""What all displays have in common: how they write durations."""

from typing import Final

# By microseconds.
DURATIONS: Final = {
    0: "0 µs",
    999: "999 µs",
    1_000: "1.00 ms",
    12_345: "12.3 ms",
    310_000: "310 ms",
    999_900: "1.00 s",
    4_750_000: "4.75 s",
    59_960_000: "60.0 s",
    119_400_000: "119 s",
    119_600_000: "2 min 0 s",
    178_000_000: "2 min 58 s",
    7_199_400_000: "119 min 59 s",
    11_100_000_000: "3 h 5 min",
    172_799_000_000: "2 days",
    345_600_000_000: "4 days",
}
