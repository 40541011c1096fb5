"""What `summarize` does: measures of each minute, and the hottest keys."""
