"""What holds for all of functions/: doctests, what check.py promises of them, and torch.compile."""

import doctest
import importlib

import pytest
import torch

import functions
from lab.checking.check import check_function
from lab.checking.children import every_module
from lab.checking.targets import functions_in

MODULES = [importlib.import_module(name) for name in every_module()]
FUNCTIONS = [function for module in MODULES for function in functions_in(module)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_doctests(module):
    failed, tried = doctest.testmod(module)
    assert failed == 0
    assert tried >= 3 * len(functions_in(module))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_is_what_it_declares_itself_to_be(function):
    verdict = check_function(function)
    assert verdict.as_declared, verdict.report()
    if verdict.mistake is None:
        assert verdict.second_derivative in ("right", "refused")
        assert verdict.notes == [] or verdict.verdict == "surrogate"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_is_what_it_declares_itself_to_be_on_cuda(function):
    verdict = check_function(function, device="cuda")
    assert verdict.as_declared, verdict.report()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_docstrings_say_what_a_reader_needs(function):
    if function.__module__ == "functions.mistakes":
        assert "Right: " in function.__doc__
        return
    for word in ("Args:", "Returns:", "Saved:", "ifferentiable", "Source:", ">>>"):
        assert word in function.__doc__
    if not check_function(function).vmap:
        assert "torch.func" in function.__doc__


def test_the_package_names_every_shipped_function():
    shipped = {f.__name__ for f in FUNCTIONS if f.__module__ != "functions.mistakes"}
    assert set(functions.__all__) == shipped == set(vars(functions)) & shipped


@pytest.mark.parametrize(
    "function",
    [function for function in FUNCTIONS if function.__module__ != "functions.mistakes"],
    ids=lambda function: function.__name__,
)
def test_compiled_gradients_are_those_of_eager(function):
    args = function.sample_inputs()[-1]
    leaves = [arg.clone().requires_grad_() for arg in args if isinstance(arg, torch.Tensor)]
    others = [arg for arg in args if not isinstance(arg, torch.Tensor)]  # callables come first

    def loss(*leaves):
        return function.apply(*others, *leaves).sin().sum()

    torch.compiler.reset()
    # aot_eager traces forward and backward as inductor does, and spares the C++ compiler.
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(loss(*leaves), leaves)
    torch.testing.assert_close(torch.autograd.grad(compiled(*leaves), leaves), expected)
