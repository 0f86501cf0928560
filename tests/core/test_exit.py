"""Programs that end without closing their loop, from inside it, or with threads still at work."""

from __future__ import annotations

import pytest

from tests.loops import script

ENDINGS = {
    "by the last line": "",
    "by sys.exit": "sys.exit(0)",
    "by sys.exit in a callback": "loop.call_soon(sys.exit, 0); loop.run_forever()",
    "by os._exit in a callback": "loop.call_soon(os._exit, 0); loop.run_forever()",
    "in an atexit function that closes it": "import atexit; atexit.register(loop.close)",
    "with the loop in a cycle": "loop.call_later(3600, loop.close); loop.myself = loop; del loop",
    "with a daemon thread at work": """
def work():
    while True:
        loop.call_soon_threadsafe(int)
threading.Thread(target=work, daemon=True).start()
loop.call_later(0.01, loop.stop)
loop.run_forever()
""",
    "with the loop running in a daemon thread": """
other = new_loop()
threading.Thread(target=other.run_forever, daemon=True).start()
other.call_soon_threadsafe(int)
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_cleanly(ending):
    begin = """
loop = new_loop()
loop.add_signal_handler(signal.SIGUSR1, print)
left, right = socket.socketpair()
loop.add_reader(left, print)
loop.call_later(3600, print)
run(loop, asyncio.sleep(0))
"""
    done = script(begin + ENDINGS[ending])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_exit_code_raised_in_a_callback_is_the_programs():
    assert script("loop = new_loop(); loop.call_soon(sys.exit, 7); loop.run_forever()").returncode == 7


def test_an_unclosed_loop_is_warned_about_at_exit_when_warnings_are_asked_for():
    done = script("loop = new_loop(); run(loop, asyncio.sleep(0)); del loop", env={"PYTHONWARNINGS": "default"})
    assert done.returncode == 0
    assert "ResourceWarning: unclosed event loop" in done.stderr
