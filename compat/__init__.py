"""Which behaviour of asyncio does epoque still differ in?  Test suites that nobody here wrote, run on both.

`python -m compat` runs them; README.md explains the table and the lists.
"""
