"""Is everything there that asyncio's own loop, transports, servers and handles have, and does it look alike?

Compared with the asyncio of the running Python: names by dir(), signatures by inspect.signature(). Of the private names
too, those that tell the state are there; what the missing ones have in common stands here, with the reason.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import fnmatch
import gc
import inspect
import os
import pickle
import socket
import sys
import weakref
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from tests.loops import new_loop, run
from tests.net.peers import DatagramRecorder, Recorder, tls_contexts, turns, unix_pair

OWN = ["loop", "transport", "datagram", "read pipe", "write pipe", "process", "server", "handle", "timer"]
KINDS = [*OWN, "TLS transport"]

# Private names of asyncio's classes that have no counterpart: which kinds, patterns of names, the reason.
LEFT_OUT = (
    ("loop", "_selector _process_events", "events go to their sources without a selectors.BaseSelector"),
    ("loop", "_ssock _csock _internal_fds _*self*", "an eventfd and a signalfd wake the loop, not a pair of sockets"),
    ("loop", "_accept_* _st*_serving _unix_server_sockets", "a listening socket is an object"),
    ("loop", "_*sock* _*sendfile* _*getaddrinfo* _ensure_resolved _create_*", "steps of coroutines in endpoints/"),
    ("loop process", "_make_* _start _log_subprocess _child_* _watcher", "classes make transports, and watch children"),
    (
        "transport datagram pipe",
        "_add_*er _call_soon _context _header_size _read_ready_* _write_send* _*buffer* _*empty_waiter",
        "steps of its I/O",
    ),
    ("TLS transport", "_test__*", "for a test of asyncio's own"),
)


# What Python gives to a class written in Python, and a compiled one does without.
MACHINERY = {"__del__", "__dict__", "__firstlineno__", "__module__", "__static_attributes__", "__weakref__"}


def left_out(kind: str, names: set[str]) -> dict[str, set[str]]:
    """Which of `names` each entry of LEFT_OUT that speaks of this kind excuses."""
    return {
        reason: {name for pattern in patterns.split() for name in fnmatch.filter(names, pattern)}
        for kinds, patterns, reason in LEFT_OUT
        if set(kind.split()) & set(kinds.split())
    }


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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("handle", "timer")])
def test_an_application_can_put_a_mock_in_the_place_of_a_method(ours, kind):
    with mock.patch.object(ours[kind], "close") as close:
        ours[kind].close()
    close.assert_called_once_with()
    assert ours[kind].close is not close


@pytest.mark.epoque_only("how attributes are kept is no promise of asyncio's")
def test_nothing_has_a_dictionary_before_it_is_needed():
    with things(new_loop()) as found:
        for kind in ("loop", "transport", "TLS transport", "datagram", "read pipe", "write pipe"):
            assert {} not in [each for each in gc.get_referents(found[kind]) if type(each) is dict], kind
        found["transport"].tag = 1
        assert {"tag": 1} in gc.get_referents(found["transport"])


@pytest.mark.epoque_only("the list is epoque's")
@pytest.mark.parametrize("kind", KINDS)
def test_private_names_are_there_or_left_out_for_a_reason(ours, stock, kind):
    missing = set(dir(stock[kind])) - set(dir(ours[kind])) - MACHINERY
    unexcused = missing - set().union(*left_out(kind, missing).values())
    assert not unexcused


@pytest.mark.epoque_only("the list is epoque's")
def test_nothing_is_excused_that_is_there(ours, stock):
    excused = collections.Counter()
    for kind in KINDS:
        for reason, names in left_out(kind, set(dir(stock[kind])) - set(dir(ours[kind]))).items():
            excused[reason] += len(names)
    assert not {reason for reason, count in excused.items() if not count}, "to be taken off the list"


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
