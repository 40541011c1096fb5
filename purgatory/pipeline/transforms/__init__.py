"""DataFrame in, DataFrame out: no session, no reading, no writing, and nothing that makes Spark run."""
