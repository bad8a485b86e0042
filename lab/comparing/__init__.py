"""At which step do recorded curves first differ, and by how much? Numbers, table, picture.

Other wings import the modules in `__all__`; the rest is private.
"""

__all__ = ["comparison", "picture"]
