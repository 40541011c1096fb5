"""Spark's settings for small frames and a short life."""

from typing import Final

SETTINGS: Final = {
    # Of a JVM that lives for a minute, half would go into compiling what it runs, and some into verifying it.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
        # Spark calls chmod for each file that it makes.
        "-Djdk.lang.Process.launchMechanism=VFORK"
    ),
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # A plan that runs once is not worth being made into Java, nor being made anew after each of its stages.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # With it, each call for a column asks Java four questions more, about the line that it is in.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
