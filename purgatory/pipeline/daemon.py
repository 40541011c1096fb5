"""The process from which Spark forks its Python workers: ``python -m purgatory.pipeline.daemon``.

Spark puts PySpark's zip files at the head of the workers' path. Python compiles what it imports from a zip
file every time. This process imports PySpark from its installation, where Python keeps the bytecode.
"""

import sys

sys.path.sort(key=lambda entry: entry.endswith(("/pyspark.zip", "-src.zip")))

if __name__ == "__main__":
    from pyspark.daemon import manager

    manager()
