"""One operation of the operating system or of the interpreter per function.

Each module stands here twice under one name: ``x.pyx`` with ``x.pxd`` makes the system call itself and is what a
compiled epoque runs; ``x.py`` does the same through the standard library and is what an interpreted one runs. Callers
cannot tell: the seam is an operation, never a C struct. ``errno`` becomes `OSError` here, EINTR is retried here after
Python's signal handlers have run, and "would block" is a return value (None or -1), not an exception.
"""
