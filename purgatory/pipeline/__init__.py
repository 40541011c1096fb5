"""From journals to answers, on Spark: tables, a report, advice. Needs the extra ``spark``."""
