"""A queue whose `append` and `popleft` no other thread can split: the interpreter's deque. Interpreted twin."""

from collections import deque

__all__ = ["Fifo", "hide", "items", "show", "size"]

Fifo = deque
items = list
size = len


def hide(queue, hiding):
    """Keep items from the garbage collector, or show them to it; here they always are."""


def show(item):
    """Let the garbage collector know of an item that was hidden from it; here none ever is."""
