"""What is in a directory, for whoever looks from outside."""
