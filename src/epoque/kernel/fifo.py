"""A queue whose `append` and `popleft` no other thread can split: the interpreter's deque. Interpreted twin."""

from collections import deque

__all__ = ["Fifo", "items", "size"]

Fifo = deque
items = list
size = len
