"""Is this backward the derivative of this forward? From a name to a verdict in words.

Other wings import the modules in `__all__`; the rest is private.
"""

__all__ = ["check", "limited", "numbers", "samples", "targets", "users_code", "verdict"]
