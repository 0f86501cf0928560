"""Is everything there that asyncio's own loop, transports, servers and handles have, and does it look alike?

Compared with the asyncio of the running Python: names by dir(), signatures by inspect.signature(). What is missing must
stand in a list here, with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import os
import pickle
import socket
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tests.loops import new_loop, run
from tests.net.peers import DatagramRecorder, Recorder, tls_contexts, turns, unix_pair

OWN = ["loop", "transport", "datagram", "read pipe", "write pipe", "process", "server", "handle", "timer"]
KINDS = [*OWN, "TLS transport"]

# Names of asyncio's classes that have no counterpart, each group for one reason. All of them begin with an underscore.
LEFT_OUT = {
    "loop": {
        "one turn is not a method, and the queue, the selector and the timers are not Python's": """
            _add_callback _add_callback_signalsafe _call_soon _check_callback _clock_resolution
            _coroutine_origin_tracking_enabled _coroutine_origin_tracking_saved_depth _old_agen_hooks _process_events
            _ready _run_forever_cleanup _run_forever_setup _run_once _selector _set_coroutine_origin_tracking
            _timer_cancelled_count""",
        "other threads and signals wake the loop through eventfd and signalfd, not through a pair of sockets": """
            _check_signal _close_self_pipe _csock _handle_signal _internal_fds _make_self_pipe _process_self_data
            _read_from_self _signal_handlers _ssock _write_to_self""",
        "steps of its coroutines on sockets and files, here functions of the modules in endpoints/": """
            _check_sendfile_params _connect_sock _create_connection_transport _create_server_getaddrinfo
            _ensure_resolved _getaddrinfo_debug _sendfile_fallback _sock_accept _sock_add_cancellation_callback
            _sock_connect _sock_connect_cb _sock_read_done _sock_recv _sock_recv_into _sock_recvfrom
            _sock_recvfrom_into _sock_sendall _sock_sendfile_fallback _sock_sendfile_native_impl
            _sock_sendfile_update_filepos _sock_sendto _sock_write_done""",
        "transports and listeners are made by their classes, and registered with the selector alone": """
            _accept_connection _accept_connection2 _make_datagram_transport _make_read_pipe_transport
            _make_socket_transport _make_ssl_transport _make_subprocess_transport _make_write_pipe_transport
            _start_serving _stop_serving _transports _unix_server_sockets""",
        "children and executors are ended by functions of other modules": """
            _check_default_executor _child_watcher_callback _do_shutdown _log_subprocess _watcher""",
    },
    "transport": {
        "reading, writing and water marks are compiled, and keep their state elsewhere": """
            _add_reader _add_writer _adjust_leftover_buffer _buffer _buffer_factory _buffer_size _call_soon _context
            _empty_waiter _eof _extra _fatal_error _get_sendmsg_buffer _high_water _low_water _make_empty_waiter
            _maybe_pause_protocol _maybe_resume_protocol _paused _protocol_connected _read_ready
            _read_ready__data_received _read_ready__get_buffer _read_ready__on_eof _read_ready_cb _reset_empty_waiter
            _set_write_buffer_limits _write_ready _write_send _write_sendmsg""",
    },
    "datagram": {
        "queues, water marks and look-ups are compiled, and keep their state elsewhere": """
            _add_reader _add_writer _address _buffer _buffer_factory _buffer_size _call_soon _context _extra
            _fatal_error _header_size _high_water _low_water _maybe_pause_protocol _maybe_resume_protocol _paused
            _protocol_connected _protocol_paused _read_ready _sendto_ready _set_write_buffer_limits""",
    },
    "read pipe": {"steps of its callbacks": "_add_reader _close _extra _fatal_error _paused _read_ready"},
    "write pipe": {
        "the queue and the water marks are compiled, and keep their state elsewhere": """
            _buffer _close _extra _fatal_error _high_water _low_water _maybe_pause_protocol _maybe_resume_protocol
            _protocol_paused _read_ready _set_write_buffer_limits _write_ready""",
    },
    "process": {
        "steps of its start and its end": """
            _check_proc _exit_waiters _finished _pending_calls _pipe_data_received _start""",
    },
    "server": {"the number of connections, until Python 3.12": "_active_count"},
}
LEFT_OUT["handle"] = LEFT_OUT["timer"] = {"steps of its __repr__": "_repr _repr_info"}


# What Python gives to a class written in Python, and a compiled one does without.
MACHINERY = {"__del__", "__dict__", "__firstlineno__", "__module__", "__static_attributes__", "__weakref__"}


def left_out(kind: str) -> set[str]:
    return set(" ".join(LEFT_OUT.get(kind, {}).values()).split())


@contextlib.contextmanager
def things(loop: asyncio.AbstractEventLoop) -> Iterator[dict[str, Any]]:
    """One object of each kind, made by `loop`, which is closed at the end."""

    async def make() -> dict[str, Any]:
        server_side, client_side = tls_contexts()
        near, far = socket.socketpair()
        (secured, _), (accepted, _) = await asyncio.gather(
            loop.create_connection(Recorder, sock=near, ssl=client_side, server_hostname=""),
            loop.connect_accepted_socket(Recorder, far, ssl=server_side),
        )
        near, far = unix_pair()
        (reading, writing), (reads, writes) = os.pipe(), os.pipe()
        return {
            "loop": loop,
            "transport": (await loop.create_connection(Recorder, sock=near))[0],
            "TLS transport": secured,
            "datagram": (await loop.create_datagram_endpoint(DatagramRecorder, ("127.0.0.1", 0)))[0],
            "read pipe": (await loop.connect_read_pipe(Recorder, open(reading, "rb", 0)))[0],
            "write pipe": (await loop.connect_write_pipe(Recorder, open(writes, "wb", 0)))[0],
            "process": (await loop.subprocess_exec(asyncio.SubprocessProtocol, "cat", stderr=None))[0],
            "server": await loop.create_server(Recorder, "127.0.0.1", 0),
            "handle": loop.call_soon(int),
            "timer": loop.call_later(3600, int),
            "other ends": (accepted, far, open(writing, "wb", 0), open(reads, "rb", 0)),
        }

    async def end() -> None:
        found["timer"].cancel()
        found["server"].close()
        found["transport"].abort()
        found["datagram"].abort()
        found["read pipe"].close()
        found["write pipe"].abort()
        found["process"].close()
        await found["process"]._wait()
        for end in found["other ends"]:
            end.close()
        await found["TLS transport"].get_protocol().lost()
        await turns(3)

    found = run(loop, make())
    try:
        yield found
    finally:
        run(loop, end())
        loop.close()


@pytest.fixture(scope="module")
def ours() -> Iterator[dict[str, Any]]:
    with things(new_loop()) as found:
        yield found


@pytest.fixture(scope="module")
def stock() -> Iterator[dict[str, Any]]:
    with things(asyncio.SelectorEventLoop()) as found:
        yield found


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_public_name_is_there(ours, stock, kind):
    assert not {name for name in public(stock[kind]) if not hasattr(ours[kind], name)}
    assert not public(stock[kind]) - public(ours[kind])


@pytest.mark.epoque_only("the list is epoque's")
@pytest.mark.parametrize("kind", KINDS)
def test_private_names_are_there_or_left_out_for_a_reason(ours, stock, kind):
    missing = set(dir(stock[kind])) - set(dir(ours[kind])) - left_out(kind) - MACHINERY
    assert not missing
    assert not left_out(kind) & set(dir(ours[kind])), "to be taken off the list"


@pytest.mark.epoque_only("asyncio's own have slots that are empty at first")
@pytest.mark.parametrize("kind", OWN)
def test_dir_names_nothing_that_is_not_there(ours, kind):
    assert not {name for name in dir(ours[kind]) if not hasattr(ours[kind], name)}


@pytest.mark.epoque_only("asyncio has all there is to compare with")
def test_every_method_of_the_interface_is_implemented(ours):
    interface = {
        name: method
        for name, method in vars(asyncio.AbstractEventLoop).items()
        if callable(method) and not name.startswith("_")
    }
    assert not {name for name, method in interface.items() if getattr(type(ours["loop"]), name) is method}


def accepts_what(function: inspect.Signature, other: inspect.Signature) -> bool:
    """Can `function` be called in every way in which `other` can, with the same meaning?"""
    mine, theirs = list(function.parameters.values()), list(other.parameters.values())
    named = {parameter.name: parameter for parameter in mine}
    catch_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in mine)
    for place, parameter in enumerate(theirs):
        if parameter.name not in named:
            if not (parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD) and catch_all):
                return False
            continue
        own = named.pop(parameter.name)
        if (own.kind, own.default) != (parameter.kind, parameter.default):
            return False
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and mine[place].name != parameter.name:
            return False
    return all(extra.default is not extra.empty or extra.kind is extra.VAR_KEYWORD for extra in named.values())


@pytest.mark.parametrize("kind", KINDS)
def test_methods_have_the_signatures_of_asyncio(ours, stock, kind):
    different = {}
    for name in public(stock[kind]):
        method, other = getattr(ours[kind], name), getattr(stock[kind], name)
        if not callable(other):
            assert not callable(method), name
            continue
        assert inspect.iscoroutinefunction(method) == inspect.iscoroutinefunction(other), name
        if not accepts_what(inspect.signature(method), inspect.signature(other)):
            different[name] = f"{inspect.signature(method)}, asyncio: {inspect.signature(other)}"
    assert not different


@pytest.mark.parametrize(
    ("one", "other", "accepted"),
    [
        ("a, b=1", "a, b=1", True),
        ("a, b=1, *, c=2", "a, b=1", True),
        ("a, **kwargs", "a, *, b=1", True),
        ("a", "a, b=1", False),
        ("a, b=2", "a, b=1", False),
        ("a, *, b=1", "a, b=1", False),
        ("b, a", "a, b", False),
        ("a, b", "a", False),
    ],
)
def test_the_comparison_of_signatures_knows_good_from_bad(one, other, accepted):
    signatures = [inspect.signature(eval(f"lambda {parameters}: None")) for parameters in (one, other)]
    assert accepts_what(*signatures) is accepted


@pytest.mark.parametrize(
    ("kind", "classes"),
    [
        ("loop", (asyncio.AbstractEventLoop,)),
        (
            "transport",
            (asyncio.BaseTransport, asyncio.ReadTransport, asyncio.WriteTransport, asyncio.Transport),
        ),
        ("TLS transport", (asyncio.Transport,)),
        pytest.param(
            "datagram",
            (asyncio.BaseTransport, asyncio.DatagramTransport),
            marks=pytest.mark.asyncio_wrong("it is a Transport only", when=sys.version_info < (3, 12)),
        ),
        ("read pipe", (asyncio.BaseTransport, asyncio.ReadTransport)),
        ("write pipe", (asyncio.BaseTransport, asyncio.WriteTransport)),
        ("process", (asyncio.BaseTransport, asyncio.SubprocessTransport)),
        ("server", (asyncio.AbstractServer, asyncio.Server)),
        ("handle", (asyncio.Handle,)),
        ("timer", (asyncio.Handle, asyncio.TimerHandle)),
    ],
)
def test_objects_pass_for_those_of_asyncio(ours, kind, classes):
    assert all(isinstance(ours[kind], cls) for cls in classes)
    others = {asyncio.DatagramTransport, asyncio.SubprocessTransport, asyncio.TimerHandle, asyncio.BaseProtocol}
    assert not isinstance(ours[kind], tuple(others - set(classes)))


@pytest.mark.parametrize("kind", KINDS)
def test_objects_can_be_referred_to_weakly_and_hashed(ours, kind):
    assert weakref.ref(ours[kind])() is ours[kind]
    assert ours[kind] in {ours[kind]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_objects_cannot_be_pickled(ours, kind, protocol):
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(ours[kind], protocol)


@pytest.mark.epoque_only("asyncio makes copies that share their descriptor")
@pytest.mark.parametrize("kind", ["loop", "transport", "datagram", "read pipe", "write pipe", "handle", "timer"])
def test_objects_cannot_be_copied(ours, kind):
    with pytest.raises(TypeError, match="^cannot pickle '.*' object$"):
        copy.copy(ours[kind])
