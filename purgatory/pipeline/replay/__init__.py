"""What `replay` does: recorded waits on timing wheels with other settings, and which setting to take."""
