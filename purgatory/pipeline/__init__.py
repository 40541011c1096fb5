"""Spark jobs that turn journals into tables, reports and advice. Needs the extra ``spark``."""
