"""Lists what is in a directory, from outside."""
