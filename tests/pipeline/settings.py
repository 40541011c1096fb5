"""Spark's settings for small frames and a short life."""

from typing import Final

SETTINGS: Final = {
    # Of a JVM that lives for a minute, half would go into compiling what it runs.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
