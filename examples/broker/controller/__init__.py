"""Who leads what: decided in one place, known to each broker in its own time."""
