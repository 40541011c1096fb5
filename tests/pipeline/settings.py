"""Settings of Spark for small frames and short sessions."""

from typing import Final, cast

from pyspark.sql import SparkSession

# For calls that end before they use Spark.
NO_SPARK: Final = cast(SparkSession, None)

SETTINGS: Final = {
    # A JVM that runs for a minute would spend half of it on compiling, and some of it on verifying bytecode.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
        # Spark runs chmod for each file that it makes; VFORK starts processes fastest.
        "-Djdk.lang.Process.launchMechanism=VFORK"
    ),
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Plans run once, so compiling them, or planning again after each stage, costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Enabled, each column expression makes four more calls to Java, about its source line.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
