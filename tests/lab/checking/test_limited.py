"""Calls in a child: what they return, how they end, and that nothing is left of them."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from lab.checking.limited import Child, call_in_child, call_in_children
from lab.errors import UserError

HOME = Path(__file__).parents[3]
SECONDS = 20


def loaded(file):
    """Run a file, as the import of a user's module would."""
    source = Path(file).read_text()
    exec(compile(source, str(file), "exec"), {"__name__": "users"})


def ran(tmp_path, source, seconds=SECONDS):
    file = tmp_path / "users.py"
    file.write_text(source)
    return call_in_child(partial(loaded, file), seconds)


def refuse(message):
    raise UserError(message)


def test_plain_data_comes_back_and_nan_with_it():
    assert call_in_child(partial(dict, loss=float("inf"), steps=[1, None]), SECONDS).value == {
        "loss": float("inf"),
        "steps": [1, None],
    }


def test_what_is_printed_is_kept_apart(tmp_path, capfd):
    source = "import os\nprint('one', flush=True)\nos.system('echo two')\nprint('three')"
    outcome = ran(tmp_path, source)
    assert (outcome.how, outcome.printed) == ("returned", "one\ntwo\nthree\n")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("source", "how", "words"),
    [
        ("import os; os._exit(0)", "died", ["exit code 0"]),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died", ["SIGKILL"]),
        ("def crash():\n    import faulthandler; faulthandler._sigsegv()\ncrash()", "died",
         ["SIGSEGV", "in crash, line 2 of users.py"]),
        ("import sys; sys.exit(3)", "raised", ["SystemExit: 3"]),
        ("\n1 / 0", "raised", ["ZeroDivisionError: division by zero"]),
        ("raise KeyboardInterrupt", "raised", ["KeyboardInterrupt"]),
        ("import atexit, os; atexit.register(os._exit, 5)", "returned", []),
        ("import threading, time\n"
         "threading.Thread(target=time.sleep, args=(60,)).start()", "returned", []),
    ],
)  # fmt: skip
def test_ends_of_a_call(tmp_path, source, how, words):
    outcome = ran(tmp_path, source)
    assert outcome.how == how
    assert all(word in outcome.text for word in words), outcome.text
    assert outcome.users_lines.startswith("Traceback") == (how == "raised")


def test_a_user_error_is_refused_with_its_message():
    outcome = call_in_child(partial(refuse, "NAME is not a Function"), SECONDS)
    assert (outcome.how, outcome.text) == ("refused", "NAME is not a Function")


@pytest.mark.parametrize("loop", ["pass", "print('more')", "signal.pause()", "torch.ones(1) + 1"])
def test_an_endless_loop_is_stopped_and_its_line_is_named(tmp_path, loop):
    source = f"import signal, torch\ndef backward():\n    while True:\n        {loop}\nbackward()"
    outcome = ran(tmp_path, source, seconds=0.5)
    assert outcome.how == "timed out"
    assert "in backward, line" in outcome.text and "of users.py" in outcome.text


def test_a_child_that_turns_its_own_limit_off_is_ended_by_the_parent(tmp_path):
    source = "import faulthandler\nfaulthandler.cancel_dump_traceback_later()\nwhile True: pass"
    assert ran(tmp_path, source, seconds=0.5).how == "timed out"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_what_the_call_started_ends_with_it(tmp_path):
    source = "import subprocess\nprint(subprocess.Popen(['sleep', '60']).pid)"
    pid = int(ran(tmp_path, source).printed)
    assert is_gone(pid)


def is_gone(pid):
    """Whether the process ended; a zombie has, though nobody has asked for its exit code yet."""
    for _ in range(500):
        try:
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def test_outcomes_come_in_the_order_of_the_calls():
    calls = [partial(time.sleep, 0.3), partial(divmod, 7, 2), partial(refuse, "no"), partial(int)]
    outcomes = call_in_children(calls, SECONDS, at_once=2)
    assert [outcome.value for outcome in outcomes] == [None, [3, 1], None, 0]


def test_a_child_can_be_asked_and_ended():
    child = Child(partial(time.sleep, 60), seconds=SECONDS)
    assert child.outcome(timeout=0.01) is None
    child.end()
    child.end()


@pytest.mark.slow
def test_ctrl_c_ends_every_child(tmp_path):
    source = f"""
import os, sys, time
from functools import partial
sys.path.insert(0, {str(HOME)!r})
from lab.checking.limited import call_in_children
from tests.lab.checking.test_limited import loaded
if __name__ == "__main__":
    calls = [partial(loaded, "endless.py")] * 2
    list(call_in_children(calls, 60, at_once=2))
"""
    (tmp_path / "parent.py").write_text(source)
    (tmp_path / "endless.py").write_text(
        "import os, pathlib\npathlib.Path(f'{os.getpid()}.pid').touch()\nwhile True: pass"
    )
    with subprocess.Popen(
        [sys.executable, "parent.py"], cwd=tmp_path, stderr=subprocess.PIPE, process_group=0
    ) as parent:
        try:
            while len(pids := list(tmp_path.glob("*.pid"))) < 2:
                assert parent.poll() is None
                time.sleep(0.01)
            os.killpg(parent.pid, signal.SIGINT)  # as a terminal sends it
            assert parent.wait(10) != 0
        finally:
            parent.kill()
        assert parent.stderr.read().count(b"KeyboardInterrupt") == 1  # the parent's alone
    assert all(is_gone(int(pid.stem)) for pid in pids)
