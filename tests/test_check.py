"""check.py as it is typed; in one process where that shows the same."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import check
import functions
from lab.checking.check import check_function
from lab.checking.children import not_returned
from lab.checking.limited import call_in_child
from lab.checking.targets import find_functions
from lab.errors import UserError

HOME = Path(__file__).parent.parent
SWISH = """
import torch

class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad_output * (s + x * s * (1 - s))
"""


def run(*arguments, cwd=HOME):
    return subprocess.run(
        [sys.executable, HOME / "check.py", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of the user's own to stand in; what it imports is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if not name.startswith(("torch", "numpy", "lab", "functions")):
            del sys.modules[name]


# ---- As users type it ---------------------------------------------------------------------------


def test_every_function_is_listed_and_is_what_it_declares():
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "exact, kink" in rows["MyReLU"]
    assert "surrogate" in rows["SignSTE"]
    assert "refused" in rows["NumpySoftplus"]
    assert "wrong (transposed)" in rows["LinearTransposedWeight"]
    assert done.stdout.splitlines()[-1].startswith("All ")
    assert "are deliberate mistakes" in done.stdout.splitlines()[-1]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.isascii()


def test_a_function_of_the_users_own_in_the_folder_they_stand_in(tmp_path):
    (tmp_path / "my_module.py").write_text(SWISH)
    done = run("my_module.Swish", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Swish: exact\n")


def test_a_module_that_raises_shows_the_real_error_from_the_users_line(tmp_path):
    (tmp_path / "unfinished.py").write_text("import torch\nvalue = 1 / 0\n")
    done = run("unfinished.Swish", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("unfinished.Swish: cannot run (import)\n")
    assert 'unfinished.py", line 2, in <module>' in done.stdout
    assert "ZeroDivisionError" in done.stdout
    assert "check.py" not in done.stdout
    assert "/lab/" not in done.stdout


def test_an_unknown_name_is_one_line_with_a_guess(tmp_path):
    done = run("MyRelu", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line == "error: MyRelu is not a Function in functions/. Did you mean MyReLU?"


# ---- What the verdicts come to ------------------------------------------------------------------


def doubled(backward):
    def twice(ctx, *grads):
        returned = backward(ctx, *grads)
        returned = returned if isinstance(returned, tuple) else (returned,)
        return tuple(None if grad is None else 2 * grad for grad in returned)

    return staticmethod(twice)


@pytest.mark.parametrize("name", functions.__all__)
def test_any_backward_that_is_broken_is_found(name, monkeypatch):
    function = getattr(functions, name)
    monkeypatch.setattr(function, "backward", doubled(function.backward))
    verdict = check_function(function)
    assert not verdict.as_declared
    assert "2 times the correct gradient" in verdict.findings[0].text


def test_a_declared_mistake_is_wrong_when_it_is_asked_for_by_name(capsys):
    assert check.main(["ReLUNoMask"]) == 1
    assert capsys.readouterr().out.startswith("ReLUNoMask: wrong (no mask)")


def test_a_mistake_that_was_corrected_is_named_in_the_table(folder, monkeypatch, capsys):
    (folder / "mended.py").write_text(SWISH.replace("Function):", 'Function):\n    mistake = "x"'))
    monkeypatch.setattr(check, "every_module", lambda: ["mended"])
    assert check.main([]) == 1
    assert "Swish, declared wrong (x): It is exact." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "kind"),
    [("class Swish(\n", "import"), ("raise SystemExit(0)\n", "import"),
     ("import os\nos._exit(0)\n", "crashed"), ("while True:\n    pass\n", "timed out")],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_a_row_and_the_others_are_checked(
    source, kind, folder, monkeypatch, capsys
):
    (folder / "half_written.py").write_text(source)
    monkeypatch.setattr(check, "every_module", lambda: ["half_written", "functions.myrelu"])
    limit = ["--timeout", "2"] if kind == "timed out" else []
    assert check.main(limit) == 1
    out = capsys.readouterr().out
    assert f"half_written            cannot run ({kind})" in out
    assert "MyReLU                  exact, kink" in out or limit
    assert "1 of 2 do not behave as declared:" in out or limit


def test_an_endless_loop_ends_at_the_limit_and_its_line_is_named(folder, capsys):
    (folder / "loop.py").write_text(SWISH.replace("(x,) =", "while True: x = ctx\n        (x,) ="))
    assert check.main(["loop.py", "--timeout", "3", "--json"]) == 1
    (verdict,) = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], verdict["findings"][0]["kind"]) == ("cannot run", "timed out")
    assert "in backward, line 12 of loop.py" in verdict["findings"][0]["text"]


def test_a_crash_shows_the_users_line(folder, capsys):
    (folder / "crashing.py").write_text(SWISH.replace("s = x.sigmoid()", "s = sigmoid(x)"))
    assert check.main(["crashing.Swish"]) == 1
    out = capsys.readouterr().out
    assert "NameError in backward: name 'sigmoid' is not defined" in out
    assert f'File "{folder}/crashing.py", line 13, in backward' in out
    assert "lab/" not in out


def test_exercises_are_checked_one_at_a_time():
    with pytest.raises(UserError, match="one exercise at a time"):
        check.main(["exercises.relu", "exercises.4"])


def test_a_surrogate_of_no_function_is_not_compared(folder, capsys):
    (folder / "rule.py").write_text(
        SWISH.replace(
            "    @staticmethod\n    def forward",
            "    surrogate = True\n\n    @staticmethod\n    def forward",
        )
    )
    assert check.main(["rule.Swish"]) == 0
    assert "the derivative of no function, as it declares" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_fault_in_the_check_is_shown_in_full():
    outcome = call_in_child(partial(check_function, functions.MyReLU, eps="no number"), 20)
    verdict = not_returned("MyReLU", outcome, "check failed")
    assert (verdict.verdict, verdict.kinds) == ("cannot run", ["check failed"])
    assert "in check_function\n" in verdict.users_lines  # the traceback


# ---- Targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("MyReLU", ["MyReLU"]),
        ("ReLUNoMask", ["ReLUNoMask"]),
        ("functions.MyReLU", ["MyReLU"]),
        ("functions.linear.LinearFunction", ["LinearFunction"]),
        ("functions.linear", ["LinearFunction"]),
        (str(HOME / "functions" / "linear.py"), ["LinearFunction"]),
        ("functions/linear.py", ["LinearFunction"]),
    ],
)
def test_what_a_target_may_be(target, names, monkeypatch):
    monkeypatch.chdir(HOME)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert [function.__name__ for function in find_functions(target)] == names


def test_a_file_may_lie_anywhere_and_import_its_neighbour(folder, capsys):
    elsewhere = folder / "some where"
    elsewhere.mkdir()
    (elsewhere / "neighbour.py").write_text("factor = 1\n")
    (elsewhere / "handed-in.py").write_text("from neighbour import factor\n" + SWISH)
    assert check.main([f"{elsewhere}/handed-in.py", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert (verdict["name"], verdict["verdict"], verdict["as_declared"]) == ("Swish", "exact", True)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("Swisch", "is not a Function in functions/. Choices:"),
        ("", "a Function's name, a dotted path"),
        ("signste", "Did you mean SignSTE?"),
        ("template", "is not a Function in functions/. Did you mean Template?"),
        ("functions.linear.LinearFunktion", "Did you mean LinearFunction?"),
        ("functions.myrelu.MyReLU.nothing", "no nothing in"),
        ("no_such_module.Swish", "there is no module no_such_module here or installed"),
        ("nowhere/swish.py", "does not exist"),
        ("lab.errors", "defines no torch.autograd.Function"),
        ("a b.c", "a dotted path such as my_module.Swish"),
        ("My ReLU", "is not a Function"),
    ],
)
def test_what_is_no_target_is_explained(target, message):
    with pytest.raises(UserError) as caught:
        find_functions(target)
    told = str(caught.value)
    assert message in told
    assert told.startswith(target or "''")
    assert not ("Did you mean" in told and "Choices:" in told)


def test_an_empty_target_is_refused_and_not_taken_for_all():
    with pytest.raises(UserError, match="'': a Function's name"):
        check.main([""])


def test_a_missing_import_inside_the_users_module_is_the_error_that_is_shown(folder, capsys):
    (folder / "needs_more.py").write_text("import no_such_package\n")
    assert check.main(["needs_more.Swish"]) == 1
    assert "No module named 'no_such_package'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("class Swish(\n", "Importing it raises SyntaxError: '(' was never closed"),
        (
            "import no_such_package\n",
            "Importing it raises ModuleNotFoundError: No module named 'no_such_package'",
        ),
        ("print('hello')\nimport sys\nsys.exit(3)\n", "Importing it raises SystemExit: 3"),
    ],
)
def test_a_file_that_cannot_be_run_is_a_verdict(source, said, folder, capsys):
    (folder / "handed_in.py").write_text(source)
    assert check.main(["handed_in.py", "--json"]) == 1
    out, err = capsys.readouterr()
    (verdict,) = json.loads(out)
    assert (verdict["name"], verdict["verdict"]) == ("handed_in.py", "cannot run")
    assert verdict["findings"][0]["text"].startswith(said)
    assert ("hello" in err) == ("hello" in source)
    assert check.main(["handed_in.py"]) == 1
    out = capsys.readouterr().out
    assert said in " ".join(out.split())
    assert f'File "{folder}/handed_in.py", line ' in out
    assert "/lab/" not in out


def test_several_targets_and_a_folder_of_functions(folder, capsys):
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").write_text("")
    (folder / "mine" / "swish.py").write_text(SWISH)
    assert check.main(["mine", "MyReLU", "--json"]) == 0
    assert [v["name"] for v in json.loads(capsys.readouterr().out)] == ["Swish", "MyReLU"]


# ---- Options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--eps", "0"], "0 is not a usable step"),
        (["--eps", "1e-300"], "1e-300 is not a usable step"),
        (["--atol", "nan"], "nan is not a positive number"),
        (["--atol", "small"], "small is not a positive number"),
        (["--seed", "-1"], "-1 is not a seed"),
        (["--colour"], "unrecognized arguments"),
    ],
)
def test_options_are_checked(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        check.main(["MyReLU", *arguments])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("device", ["gpu", "meta", "mps"])
def test_devices_are_checked(device):
    with pytest.raises(UserError, match=f"device={device}"):
        check.main(["MyReLU", "--device", device])


def test_options_reach_the_check(capsys):
    assert check.main(["LinearBiasAveraged", "--atol", "5", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["verdict"] == "exact"
    texts = []
    for seed in ("0", "1"):
        check.main(["LinearBiasAveraged", "--seed", seed])
        texts.append(capsys.readouterr().out)
    assert texts[0] != texts[1]


def test_json_is_a_list_with_all_that_is_known(capsys):
    assert check.main(["MyReLU", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["verdict"] == "exact"
    assert verdict["kinks"][0]["backward"] == 1
    assert verdict["kinks"][0]["relu"] == 0
    assert verdict["vmap"] is False


def test_json_knows_no_infinity(folder, capsys):
    (folder / "infinite.py").write_text(SWISH.replace("return grad_output *", "return torch.inf *"))
    assert check.main(["infinite.py", "--json"]) == 1
    out = capsys.readouterr().out
    assert json.loads(out, parse_constant=pytest.fail)[0]["largest_error"] == "inf"
