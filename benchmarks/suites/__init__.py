"""The suites, one module or package each. A benchmark is a file that has its alternatives or names them."""
