"""The suites, one module or package each. Each benchmark is a file that has the alternatives or names them."""
