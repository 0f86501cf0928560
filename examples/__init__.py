"""Example programs; `python -m examples.demo` runs them."""
