"""Processes that run tests: each belongs to one suite and one loop, and tells what happens on a pipe."""
