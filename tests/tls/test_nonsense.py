"""TLS objects made or used in ways nobody should: exceptions at most, never a crash.

Each case runs in a process of its own, which must live to its end.
"""

from __future__ import annotations

import textwrap

import pytest

from tests.core.test_nonsense import PRELUDE
from tests.loops import checked_script

pytestmark = pytest.mark.epoque_only("about epoque's own classes")

CONNECTED = """
from tests.net.peers import Recorder, settle
from tests.tls.far import Far, client_context, server_context

async def connected():
    near, other = socket.socketpair()
    far = Far(other, server_context(), server_side=True)
    connecting = loop.create_connection(Recorder, sock=near, ssl=client_context(), server_hostname="localhost")
    (transport, protocol), _ = await asyncio.gather(connecting, far.handshake())
    return transport, protocol, far

loop.set_exception_handler(lambda *_: None)
"""

CASES = {
    "transports made of nonsense": """
        from epoque.transports.tls import TLSTransport
        from epoque.transports.tlsconnection import TLSConnection

        for kind in (TLSTransport, TLSConnection):
            for count in range(8):
                for value in (None, loop, 3, object()):
                    made = harmless(kind, *[value] * count)
                    if made is not None:
                        use(made)
            for engine in (None, 3, object()):
                made = harmless(kind, loop, asyncio.Protocol(), engine, None, 60, 30)
                if made is not None:
                    use(made)
                    harmless(made.data_received, b"data")
            use(kind.__new__(kind))
    """,
    "engines made of nonsense": """
        import ssl
        from epoque.kernel.tls import Engine

        use(Engine.__new__(Engine))
        for count in range(5):
            for value in (None, 3, object(), ssl.create_default_context()):
                made = harmless(Engine, *[value] * count)
                if made is not None:
                    use(made)
        engine = Engine(client_context(), False, "localhost")
        harmless(engine.__init__)
        harmless(engine.__init__, None, None, None)
        harmless(engine.__init__, client_context(), True, "localhost")
        use(engine)
    """,
    "every method of a transport, in every state": """
        from epoque.transports.tls import TLSTransport

        async def main():
            transport, protocol, far = await connected()
            use(transport)
            await settle()
            use(transport)
            harmless(transport.data_received, b"nonsense")
            harmless(transport.eof_received)
            harmless(transport.connection_lost, None)
            harmless(transport.connection_made, None)
            use(transport)
            far.sock.close()
            await settle()

        run(loop, main())
    """,
    "the ssl module's object loses what it is about": """
        async def main():
            transport, protocol, far = await connected()
            transport.get_extra_info("ssl_object")._sslobj = None
            gc.collect()
            transport.write(b"x" * 100)
            await far.send(b"data")
            await settle()
            transport.close()
            await settle()
            far.sock.close()
            await protocol.lost()

        run(loop, main())
    """,
    "initialised again while connected": """
        async def main():
            for args in ((), (None,) * 6, (loop, asyncio.Protocol(), None, None, 1, 1)):
                transport, protocol, far = await connected()
                harmless(transport.__init__, *args)
                harmless(transport.write, b"x")
                await far.send(b"data")
                await settle()
                use(transport)
                far.sock.close()
                await settle()

        run(loop, main())
    """,
    "the ssl object is used behind our back": """
        async def main():
            for name, *args in (("unwrap",), ("do_handshake",), ("read", 100), ("write", b"x"), ("pending",)):
                class Meddling(Recorder):
                    def data_received(self, data):
                        super().data_received(data)
                        harmless(getattr(self.transport.get_extra_info("ssl_object"), name), *args)
                        self.transport.write(b"answer")

                transport, protocol, far = await connected()
                transport.set_protocol(meddling := Meddling())
                meddling.transport = transport
                await far.send(b"data")
                await far.send(b"data")
                await settle()
                transport.close()
                await settle()
                far.sock.close()
                await meddling.reaches("lost")

        run(loop, main())
    """,
    "rubbish in cycles": """
        async def main():
            for _ in range(5):
                transport, protocol, far = await connected()
                context = transport.get_extra_info("sslcontext")
                context.cycle = transport.get_extra_info("ssl_object").cycle = [transport, protocol]
                far.sock.close()
                await settle()
                del transport, protocol, context
                gc.collect()

        run(loop, main())
        gc.collect()
    """,
    "a message callback that closes, and one that raises": """
        async def main():
            for what in ("close", "abort", "raise", "write"):
                transport, protocol, far = await connected()

                def called(*_):
                    if what == "raise":
                        raise ZeroDivisionError
                    harmless(getattr(transport, what), *([b"x"] if what == "write" and len(calls) < 3 else []))
                    calls.append(what)

                calls = []
                transport.get_extra_info("sslcontext")._msg_callback = called
                await far.send(b"data")
                await settle()
                transport.write(b"data")
                await settle()
                transport.close()
                await settle()
                far.sock.close()
                await settle()

        run(loop, main())
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_nothing_crashes(code: str) -> None:
    checked_script(PRELUDE + CONNECTED + textwrap.dedent(code) + "\nprint('alive')")
