"""Descriptors that are closed, duplicated and given out again while they are watched."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket

import pytest

from tests.core.idle import SPIN, cpu_share
from tests.loops import on_kqueue, run
from tests.net.peers import nonblocking_pair, turns

DIRECTIONS = {"reader": ("add_reader", "remove_reader"), "writer": ("add_writer", "remove_writer")}


@pytest.mark.asyncio_wrong("it tells epoll about the other one, and raises EBADF")
@pytest.mark.parametrize("first", DIRECTIONS)
@pytest.mark.parametrize("duplicated", [False, True])
def test_reader_and_writer_of_a_closed_socket_can_be_removed_one_after_the_other(loop, first, duplicated):
    near, far = nonblocking_pair()
    with far, contextlib.ExitStack() as stack:
        if duplicated:
            stack.enter_context(near.dup())
        number = near.fileno()
        loop.add_reader(number, lambda: None)
        loop.add_writer(number, lambda: None)
        near.close()
        assert getattr(loop, DIRECTIONS[first][1])(number)
        for _, remove in DIRECTIONS.values():
            getattr(loop, remove)(number)
            assert not getattr(loop, remove)(number)


@pytest.mark.asyncio_wrong("it spins")
def test_a_number_given_to_a_file_that_cannot_be_watched_disturbs_nobody(loop, tmp_path):
    near, far = nonblocking_pair()
    with far, near.dup(), open(tmp_path / "file", "wb") as file:
        number = near.fileno()
        loop.add_reader(number, lambda: None)
        near.close()
        os.dup2(file.fileno(), number)
        far.send(b"x")
        assert run(loop, cpu_share()) < SPIN
        assert loop.remove_reader(number) is on_kqueue  # which forgets what is closed, and tells nobody
        os.close(number)


@pytest.mark.asyncio_wrong("it raises EPERM")
def test_a_registration_can_be_removed_when_its_number_is_a_file_that_cannot_be_watched(loop, tmp_path):
    near, far = nonblocking_pair()
    with far, open(tmp_path / "file", "wb") as file:
        number = near.fileno()
        loop.add_reader(number, lambda: None)
        loop.add_writer(number, lambda: None)
        near.close()
        os.dup2(file.fileno(), number)
        assert loop.remove_writer(number)
        loop.remove_reader(number)
        os.close(number)


def until_silent(loop, ran):
    """A closed descriptor is looked for now and then only; how many turns that takes depends on how short they are."""
    for _ in range(1000):
        ran.clear()
        run(loop, turns(200))
        if not ran:
            return
    raise AssertionError("it is never noticed")


@pytest.mark.asyncio_wrong("it never notices either")
def test_noticing_one_closed_descriptor_does_not_watch_the_new_owner_of_another(loop):
    """The first leaves a duplicate behind; the second a number, which is a stranger's when the first is noticed."""
    ghost, ghost_peer = nonblocking_pair()
    stale, stale_peer = nonblocking_pair()
    stranger, stranger_peer = nonblocking_pair()
    ran = []
    with ghost_peer, stale_peer, stranger, stranger_peer, ghost.dup():
        loop.add_reader(ghost, ran.append, "ghost")
        number = stale.fileno()
        loop.add_reader(number, ran.append, "stale")
        loop.remove_reader(ghost)
        loop.add_reader(ghost, ran.append, "ghost")
        ghost.close()
        stale.close()
        os.dup2(stranger.fileno(), number)
        ghost_peer.send(b"x")
        until_silent(loop, ran)
        stranger_peer.send(b"x")
        run(loop, turns(200))
        os.close(number)
    assert ran == []


@pytest.mark.asyncio_wrong("it raises EBADF when one of two registrations of a closed socket is removed")
def test_a_callback_runs_only_while_its_registration_stands(loop):
    """Sockets are made, duplicated, closed, removed and watched in every order, from callbacks too."""
    for seed in range(60):
        scene = Scene(loop, random.Random(seed))
        run(loop, scene.play())
    assert run(loop, cpu_share(0.1)) < SPIN


class Scene:
    def __init__(self, loop, choices):
        self.loop = loop
        self.choices = choices
        self.socks: list[socket.socket] = []
        self.duplicates: list[socket.socket] = []
        self.tokens: dict[tuple[int, str], object] = {}

    async def play(self):
        for _ in range(40):
            self.step()
            if self.choices.random() < 0.4:
                await asyncio.sleep(0)
        while self.socks:
            self.close(self.socks[-1])
        await turns(3)
        for duplicate in self.duplicates:
            duplicate.close()

    def step(self):
        action = self.choices.choice([self.make, self.close, self.watch, self.watch, self.remove, self.duplicate])
        if action == self.make or not self.socks:
            self.make()
        else:
            action(self.choices.choice(self.socks))

    def make(self):
        if len(self.socks) < 16:
            near, far = nonblocking_pair()
            self.socks += [near, far]
            if self.choices.random() < 0.5:
                far.send(b"x")

    def watch(self, sock):
        direction, token = self.choices.choice(list(DIRECTIONS)), object()
        self.tokens[sock.fileno(), direction] = token
        getattr(self.loop, DIRECTIONS[direction][0])(sock, self.ready, sock.fileno(), direction, token)

    def ready(self, number, direction, token):
        assert self.tokens.get((number, direction)) is token
        if self.choices.random() < 0.7:
            self.step()

    def remove(self, sock):
        for direction in self.choices.sample(list(DIRECTIONS), self.choices.randint(1, 2)):
            known = self.tokens.pop((sock.fileno(), direction), None)
            assert getattr(self.loop, DIRECTIONS[direction][1])(sock) == (known is not None)

    def close(self, sock):
        self.socks.remove(sock)
        number, early = sock.fileno(), self.choices.random() < 0.5
        if not early:
            sock.close()
        for direction, (_, remove) in DIRECTIONS.items():
            self.tokens.pop((number, direction), None)
            getattr(self.loop, remove)(number)
        if early:
            sock.close()

    def duplicate(self, sock):
        self.duplicates.append(sock.dup())
