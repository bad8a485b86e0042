"""Is this backward the derivative of this forward? From a name to a verdict in words.

Other wings import the modules in `__all__`:

    check        `check_function`: one Function -> one verdict
    children     what is typed -> verdicts, each from a child process with a time limit
    limited      run any call in such a child
    numbers      gradients, Jacobians, numerical gradients
    plot         draw what a check compares
    samples      a Function with one tuple of arguments; declared inputs
    targets      a name, a dotted path or a file -> Functions
    users_code   run somebody's code, and tell what it raises from our own faults
    verdict      what was found, as data and in words

Private: guesses (inputs for a Function that declares none), likely (kinds and shapes to guess),
contract (one call of forward and backward, as PyTorch expects it), probes (the questions), causes
(why is a gradient wrong?), slips (PyTorch's errors in plain words).
"""

__all__ = [
    "check",
    "children",
    "limited",
    "numbers",
    "plot",
    "samples",
    "targets",
    "users_code",
    "verdict",
]
