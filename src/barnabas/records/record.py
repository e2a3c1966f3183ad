"""Records as objects: what a consumer hands out and a builder takes.

`Record` is the class of the kernel that runs; both twins have the same fields, equality, hash and pickle.
"""

from barnabas.records._walk_plain import Header
from barnabas.records.kernel import Record

__all__ = ["Header", "Record"]
