"""The report: a page with charts and tables of the pipeline's results."""
