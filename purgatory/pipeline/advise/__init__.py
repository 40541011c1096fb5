"""What `advise` does: how long operations take to complete, what timeouts would do, and verdicts on them."""
