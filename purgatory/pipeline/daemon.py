"""The process that Spark forks its Python workers from: ``python -m purgatory.pipeline.daemon``.

Spark puts PySpark's zip files at the head of the workers' path. Python compiles what it imports from a zip
file every time. Here PySpark is imported from where it is installed, with the bytecode that is kept there.
"""

import sys

sys.path.sort(key=lambda entry: entry.endswith(("/pyspark.zip", "-src.zip")))

if __name__ == "__main__":
    from pyspark.daemon import manager

    manager()
