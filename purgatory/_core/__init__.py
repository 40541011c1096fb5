"""What mypyc compiles: the timer, the operation, the watchers and the engine. Nothing here is public."""
