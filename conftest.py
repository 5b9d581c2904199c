"""Shared by every pytest run in this tree: hypothesis draws the same examples every time."""

from hypothesis import settings

settings.register_profile("tree", derandomize=True, deadline=None, database=None)
settings.load_profile("tree")
