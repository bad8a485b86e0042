"""The graph that autograd walks in backward: its nodes, and what a reader knows them by."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Collection
from typing import Any

import torch
from torch.autograd.graph import Node

from lab.errors import is_users_file


def nodes_between(last: Node | None, first: Collection[Node] = ()) -> tuple[Node, ...]:
    """The nodes from `last` back to the leaves or to the nodes in `first`, which are left out.

    Nodes that only add a gradient to a leaf's `.grad` are left out as well.

    >>> x = torch.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> [node.name() for node in nodes_between(y.exp().sum().grad_fn, [y.grad_fn])]
    ['SumBackward0', 'ExpBackward0']
    """
    found: list[Node] = []
    waiting = [last]
    while waiting:
        node = waiting.pop(0)
        if node is None or node in found or node in first or hasattr(node, "variable"):
            continue
        found.append(node)
        waiting += [before for before, _ in node.next_functions]
    return tuple(found)


def function_of(node: Node) -> type[torch.autograd.Function] | None:
    """The user's Function behind a node; None for a node that PyTorch wrote."""
    function: Any = getattr(type(node), "_forward_cls", None)
    return function if function and is_users_file(inspect.getfile(function)) else None


def called(node: Node) -> str:
    """The name of the user's Function, else the function of `torch`, else the node's own name.

    >>> x = torch.ones(2, requires_grad=True)
    >>> called(x.relu().grad_fn), called(torch.nn.functional.mse_loss(x, x).grad_fn)
    ('torch.relu', 'MseLossBackward0')
    """
    if function := function_of(node):
        return function.__name__
    words = re.findall("[A-Z][a-z0-9]*", node.name().partition("Backward")[0])
    name = "_".join(words).lower()
    return f"torch.{name}" if hasattr(torch, name) else node.name().rpartition("::")[2]


def users_line(node: Node, method: str = "backward") -> str:
    """Where the user wrote a method of a node's Function, such as `functions/linear.py:64`.

    Returns:
        The file as seen from here and the line of `def`; "" for a node that PyTorch wrote.
    """
    function = function_of(node)
    if function is None:
        return ""
    code = inspect.unwrap(getattr(function, method))
    lines, first = inspect.getsourcelines(code)
    decorators = next((i for i, text in enumerate(lines) if text.lstrip().startswith("def ")), 0)
    return f"{os.path.relpath(inspect.getfile(code))}:{first + decorators}"
