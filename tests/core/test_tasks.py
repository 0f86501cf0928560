"""create_future, create_task and the task factory."""

from __future__ import annotations

import asyncio
import collections.abc
import contextvars
import gc
import inspect
import weakref

import pytest

from tests.loops import run, turn

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
EAGER_KEYWORD = any(
    name in ("eager_start", "kwargs") for name in inspect.signature(asyncio.BaseEventLoop.create_task).parameters
)


async def value(result=None):
    return result


def test_create_future_gives_a_pending_asyncio_future_of_this_loop(loop):
    future = loop.create_future()
    assert isinstance(future, asyncio.Future)
    assert asyncio.isfuture(future)
    assert future.get_loop() is loop
    assert not future.done()


def test_done_callbacks_run_on_the_loop_in_their_order(loop):
    future, ran = loop.create_future(), []
    for i in range(5):
        future.add_done_callback(lambda _, i=i: ran.append(i))
    future.set_result(None)
    assert ran == []
    turn(loop)
    assert ran == list(range(5))


def test_an_exception_never_retrieved_is_reported_to_the_loop(loop, errors):
    future = loop.create_future()
    future.set_exception(ValueError("lost"))
    del future
    [context] = errors
    assert "exception was never retrieved" in context["message"]
    assert str(context["exception"]) == "lost"


def test_create_task_gives_an_asyncio_task_that_starts_in_the_next_turn(loop):
    started = []

    async def work():
        started.append(asyncio.current_task())

    task = loop.create_task(work())
    assert isinstance(task, asyncio.Task)
    assert task.get_loop() is loop
    assert started == []
    turn(loop)
    assert started == [task]
    assert asyncio.all_tasks(loop) == set()


def test_name_is_passed_on(loop):
    task = loop.create_task(value(), name="the name")
    assert task.get_name() == "the name"
    assert loop.create_task(value()).get_name().startswith("Task-")
    assert loop.create_task(value(), name=None).get_name().startswith("Task-")
    turn(loop)


def test_context_is_passed_on(loop):
    async def change():
        variable.set("inside")

    context = contextvars.copy_context()
    loop.create_task(change(), context=context)
    loop.create_task(change())
    loop.create_task(change(), context=None)
    turn(loop)
    assert context[variable] == "inside"
    assert variable.get() == "unset"


@pytest.mark.skipif(not EAGER_KEYWORD, reason="asyncio's create_task of this Python has no eager_start")
def test_eager_start_is_passed_on(loop):
    started = []

    async def work():
        started.append(1)

    async def main():
        task = loop.create_task(work(), eager_start=True, name="eager")
        assert started == [1]
        assert task.done()
        assert task.get_name() == "eager"
        task = loop.create_task(work(), eager_start=False)
        assert started == [1]
        await task

    run(loop, main())


@pytest.mark.parametrize("wrong", [None, 1, value, object()])
def test_what_is_no_coroutine_is_a_type_error(loop, wrong):
    with pytest.raises(TypeError):
        loop.create_task(wrong)


def test_an_unknown_keyword_is_a_type_error(loop):
    coroutine = value()
    with pytest.raises(TypeError):
        loop.create_task(coroutine, unknown=1)
    coroutine.close()


def test_a_name_given_by_position_is_a_type_error(loop):
    coroutine = value()
    with pytest.raises(TypeError):
        loop.create_task(coroutine, "name")
    coroutine.close()


def test_a_generator_based_awaitable_coroutine_runs(loop):
    class Custom:
        """A coroutine in the sense of collections.abc, as compiled coroutines are."""

        def __init__(self):
            self.steps = iter([None, None])

        def send(self, _):
            for step in self.steps:
                return step
            raise StopIteration("custom")

        def throw(self, *exc):
            raise exc[0]

        def close(self):
            pass

        def __await__(self):
            return self

    collections.abc.Coroutine.register(Custom)
    assert loop.run_until_complete(loop.create_task(Custom())) == "custom"


def test_the_task_factory_is_none_at_first_and_kept_when_set(loop):
    def factory(loop, coroutine, **options):
        return asyncio.Task(coroutine, loop=loop, **options)

    assert loop.get_task_factory() is None
    loop.set_task_factory(factory)
    assert loop.get_task_factory() is factory
    loop.set_task_factory(None)
    assert loop.get_task_factory() is None


@pytest.mark.parametrize("wrong", [1, "text", object()])
def test_a_task_factory_that_cannot_be_called_is_a_type_error(loop, wrong):
    with pytest.raises(TypeError, match="task factory must be a callable or None"):
        loop.set_task_factory(wrong)
    assert loop.get_task_factory() is None


def test_the_task_factory_makes_the_tasks_and_gets_loop_coroutine_and_context(loop):
    class MyTask(asyncio.Task):
        pass

    calls = []

    def factory(loop, coroutine, **options):
        calls.append((loop, coroutine, options))
        return MyTask(coroutine, loop=loop, **options)

    loop.set_task_factory(factory)
    context, coroutine = contextvars.copy_context(), value(7)
    task = loop.create_task(coroutine, name="by factory", context=context)
    assert type(task) is MyTask
    assert task.get_name() == "by factory"
    assert calls[0][:2] == (loop, coroutine)
    assert calls[0][2]["context"] is context
    assert run(loop, task) == 7


def test_a_task_factory_of_two_arguments_serves_where_no_context_is_given(loop):
    loop.set_task_factory(lambda loop, coroutine: asyncio.Task(coroutine, loop=loop))
    assert loop.run_until_complete(value(1)) == 1
    assert loop.run_until_complete(loop.create_task(value(2))) == 2


def test_the_exception_of_a_task_factory_reaches_the_caller(loop):
    def factory(*_, **__):
        raise ZeroDivisionError

    loop.set_task_factory(factory)
    coroutine = value()
    with pytest.raises(ZeroDivisionError):
        loop.create_task(coroutine)
    coroutine.close()
    loop.set_task_factory(None)


def test_run_until_complete_and_gather_go_through_the_task_factory(loop):
    made = []

    def factory(loop, coroutine, **options):
        made.append(coroutine.__qualname__)
        return asyncio.Task(coroutine, loop=loop, **options)

    async def main():
        await asyncio.gather(value(1), value(2))

    loop.set_task_factory(factory)
    loop.run_until_complete(main())
    assert len(made) == 3


@pytest.mark.since(3, 12)
def test_the_eager_task_factory_starts_tasks_at_once(loop):
    log = []

    async def work(name):
        log.append(asyncio.current_task())
        await asyncio.sleep(0)
        log.append(name)
        return name

    async def main():
        task = asyncio.current_task()
        eager = loop.create_task(work("work"), name="eager")
        assert log == [eager]
        assert eager.get_name() == "eager"
        assert asyncio.current_task() is task
        done = loop.create_task(value("at once"))
        assert done.done()
        return await asyncio.gather(eager, done)

    loop.set_task_factory(asyncio.eager_task_factory)
    assert run(loop, main()) == ["work", "at once"]
    assert log[1:] == ["work"]


@pytest.mark.since(3, 12)
def test_an_eager_task_made_outside_the_run_starts_when_the_loop_runs(loop):
    loop.set_task_factory(asyncio.eager_task_factory)
    started = []

    async def work():
        started.append(1)

    task = loop.create_task(work())
    assert started == []
    loop.run_until_complete(task)
    assert started == [1]


@pytest.mark.since(3, 12)
def test_a_task_class_of_its_own_can_be_eager(loop):
    class MyTask(asyncio.Task):
        pass

    loop.set_task_factory(asyncio.create_eager_task_factory(MyTask))

    async def main():
        task = loop.create_task(value(3))
        assert type(task) is MyTask
        assert task.done()
        return await task

    assert run(loop, main()) == 3


def test_a_pending_task_destroyed_is_reported(loop, errors):
    async def wait_forever(future):
        await future

    future = loop.create_future()
    reference = weakref.ref(loop.create_task(wait_forever(future), name="forgotten"))
    turn(loop)
    del future

    gc.collect()
    assert [context["message"] for context in errors] == ["Task was destroyed but it is pending!"]
    errors.clear()  # the report keeps the task: from Python 3.15 on weak references see that
    gc.collect()
    assert reference() is None


def test_current_task_is_right_in_nested_awaits_and_gone_afterwards(loop):
    async def main():
        task = asyncio.current_task()
        await asyncio.sleep(0)
        assert asyncio.current_task() is task
        return task

    task = loop.create_task(main())
    assert run(loop, task) is task
    assert asyncio.current_task(loop) is None


def test_a_task_cancelled_before_its_start_never_starts(loop):
    started = []

    async def work():
        started.append(1)

    task = loop.create_task(work())
    task.cancel()
    turn(loop)
    turn(loop)
    assert task.cancelled()
    assert started == []
