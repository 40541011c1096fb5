"""Functions from DataFrames to DataFrames that several commands need, or `compact` or `generate` alone."""
