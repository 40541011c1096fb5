"""Settings of Spark for short tests."""

from typing import Final

from purgatory.pipeline.spark import Spark

# For calls that use no Spark. It does not start.
NO_SPARK: Final = Spark()

SETTINGS: Final = {
    # A JVM that runs for a minute would spend half of it on compiling, and some of it on verifying bytecode.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
        # Spark runs chmod for each file that it makes; VFORK starts processes fastest.
        "-Djdk.lang.Process.launchMechanism=VFORK"
    ),
}
