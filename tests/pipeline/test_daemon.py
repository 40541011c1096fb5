"""The process that Python workers are forked from."""

from __future__ import annotations

import runpy
import sys

import pyspark
import pyspark.daemon
import pytest
from pyspark.sql import SparkSession


def test_what_is_installed_comes_before_the_zip_files_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(pyspark.daemon, "manager", lambda: started.append(list(sys.path)))
    zipped = ["/spark/lib/pyspark.zip", "/spark/lib/py4j-0.10-src.zip"]
    own = list(sys.path)
    monkeypatch.setattr(sys, "path", [*zipped, *own])
    # Another test may have imported it.
    monkeypatch.delitem(sys.modules, "purgatory.pipeline.daemon", raising=False)
    runpy.run_module("purgatory.pipeline.daemon", run_name="__main__")
    assert started == [[*own, *zipped]]


def test_workers_import_the_pyspark_of_the_driver(spark: SparkSession) -> None:
    def imported(_: int) -> str:
        return pyspark.__file__

    found = spark.sparkContext.parallelize(range(2), 2).map(imported).collect()
    assert set(found) == {pyspark.__file__}
