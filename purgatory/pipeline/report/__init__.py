"""The report: a page that shows what the pipeline has found, with the tables it shows."""
