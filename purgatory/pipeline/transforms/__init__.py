"""Functions from DataFrames to DataFrames. They read and write no files, and trigger no Spark job."""
