"""To a type checker an epoque loop is asyncio's own Unix loop: the methods are the same, and typeshed knows them."""

import asyncio

class EventLoop(asyncio.SelectorEventLoop):
    slow_callback_duration: float
    def __init__(self) -> None: ...
