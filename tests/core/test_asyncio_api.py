"""asyncio's own tools on the loop: runners, timeouts, groups, queues, locks."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.loops import new_loop, run


async def value(result=None):
    await asyncio.sleep(0)
    return result


def test_a_runner_runs_several_coroutines_on_one_loop():
    with asyncio.Runner(loop_factory=new_loop) as runner:
        loop = runner.get_loop()
        assert [runner.run(value(i)) for i in range(3)] == [0, 1, 2]
        assert not loop.is_closed()
    assert loop.is_closed()


def test_a_runner_switches_debug_mode():
    with asyncio.Runner(debug=True, loop_factory=new_loop) as runner:
        assert runner.get_loop().get_debug() is True


def test_a_runner_cancels_what_is_left_and_shuts_everything_down():
    log = []

    async def background():
        try:
            await asyncio.sleep(60)
        finally:
            log.append("cancelled")

    async def numbers():
        try:
            yield 1
        finally:
            log.append("closed")

    async def main():
        tasks.append(asyncio.create_task(background()))
        generators.append(numbers())
        await anext(generators[0])
        await asyncio.to_thread(int)

    tasks, generators, before = [], [], threading.active_count()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert log == ["cancelled", "closed"]
    assert threading.active_count() == before


@pytest.mark.since(3, 12)
def test_asyncio_run_takes_the_loop_factory():
    async def main():
        return type(asyncio.get_running_loop())

    loop = new_loop()
    loop.close()
    assert asyncio.run(main(), loop_factory=new_loop) is type(loop)


def test_a_timeout_cancels_and_says_so(loop):
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001) as timeout:
                await asyncio.sleep(60)
        assert timeout.expired()
        async with asyncio.timeout(60) as timeout:
            timeout.reschedule(loop.time() + 30)
            await asyncio.sleep(0)
        assert not timeout.expired()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(loop.time() - 1):
                await asyncio.sleep(60)

    run(loop, main())


def test_wait_for_gives_the_result_or_times_out(loop):
    async def main():
        assert await asyncio.wait_for(value(1), 5) == 1
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(60), 0.001)

    run(loop, main())


def test_a_task_group_waits_for_all_and_cancels_the_others_on_a_failure(loop):
    cancelled = []

    async def endless():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    async def fail():
        await asyncio.sleep(0.001)
        raise ValueError("on purpose")

    async def main():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(value(i)) for i in range(10)]
        assert [task.result() for task in tasks] == list(range(10))
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(endless())
                group.create_task(fail())
        assert [str(exc) for exc in caught.value.exceptions] == ["on purpose"]

    run(loop, main())
    assert cancelled == [1]


def test_gather_wait_shield_and_as_completed(loop):
    async def main():
        assert await asyncio.gather(*(value(i) for i in range(10))) == list(range(10))
        done, pending = await asyncio.wait({loop.create_task(value(i)) for i in range(3)})
        assert sorted(task.result() for task in done) == [0, 1, 2]
        assert not pending
        assert await asyncio.shield(value(5)) == 5
        assert sorted([await each for each in asyncio.as_completed([value(1), value(2)])]) == [1, 2]

    run(loop, main())


def test_queues_locks_events_conditions_semaphores_and_barriers(loop):
    log = []

    async def producer(queue):
        for i in range(100):
            await queue.put(i)
        await queue.put(None)

    async def consumer(queue):
        while (item := await queue.get()) is not None:
            log.append(item)

    async def critical(lock, running):
        async with lock:
            running.append(1)
            assert len(running) == 1
            await asyncio.sleep(0)
            running.pop()

    async def main():
        queue = asyncio.Queue(3)
        await asyncio.gather(producer(queue), consumer(queue))
        lock, running = asyncio.Lock(), []
        await asyncio.gather(*(critical(lock, running) for _ in range(10)))
        condition, event, semaphore, barrier = (
            asyncio.Condition(),
            asyncio.Event(),
            asyncio.Semaphore(2),
            asyncio.Barrier(2),
        )
        loop.call_soon(event.set)
        await event.wait()
        async with semaphore:
            await asyncio.gather(barrier.wait(), barrier.wait())
        async with condition:
            condition.notify_all()

    run(loop, main())
    assert log == list(range(100))


def test_streams_of_time_keep_their_order(loop):
    log = []

    async def sleeper(delay):
        await asyncio.sleep(delay)
        log.append(delay)

    async def main():
        await asyncio.gather(*(sleeper(delay) for delay in (0.03, 0.01, 0.02, 0)))

    run(loop, main())
    assert log == [0, 0.01, 0.02, 0.03]


def test_a_future_awaited_by_many_wakes_all(loop):
    async def waiter(future):
        return await future

    async def main():
        future = loop.create_future()
        tasks = [loop.create_task(waiter(future)) for _ in range(50)]
        await asyncio.sleep(0)
        future.set_result("all")
        return await asyncio.gather(*tasks)

    assert run(loop, main()) == ["all"] * 50


def test_cancellation_reaches_the_innermost_await(loop):
    log = []

    async def inner():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            log.append("inner")
            raise

    async def main():
        task = loop.create_task(inner())
        await asyncio.sleep(0)
        task.cancel("the reason")
        with pytest.raises(asyncio.CancelledError, match="the reason"):
            await task
        assert task.cancelled()

    run(loop, main())
    assert log == ["inner"]
