"""Sphinx configuration."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Fucina for Python"
author = "The Fucina for Python authors"
copyright = "2026, the Fucina for Python authors"
version = release = installed_version("fucina")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "block_records",
    "chart",
    "clause_lines",
    "commands",
    "complete",
    "markdown",
    "memory_records",
    "messages",
    "ownership",
    "picture",
    "records",
    "team_records",
]
exclude_patterns = ["_build"]
root_doc = "index"

html_theme = "furo"
html_title = f"Fucina {release}"
html_static_path = ["_static"]
html_css_files = ["fucina.css"]
html_theme_options: dict[str, list[str]] = {"footer_icons": []}
html_show_sphinx = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False

nitpicky = True
nitpick_ignore = [
    # annotations of the standard library and numpy: their inventories are on the network, the build is not
    ("py:class", "Buffer"),
    ("py:class", "types.MappingProxyType"),
    # words of numpydoc parameter lines
    ("py:class", "array"),
    ("py:class", "buffer"),
    ("py:class", "callable"),
    ("py:class", "float32"),
    ("py:class", "integers"),
    ("py:class", "ndarray"),
    ("py:class", "optional"),
    ("py:class", "sequence"),
    ("py:class", "np.dtype"),
    ("py:class", "np.generic"),
]
nitpick_ignore_regex = [
    (r"py:(class|obj|data)", r"(numpy|np|npt|collections|typing|typing_extensions|ctypes)\..*"),
    (r"py:class", r"(AnyArray|ScalarValue|CData)"),
    # what a type is called in a signature, and parts that are put together to one class
    (r"py:class", r"(RawTensor|Storage|storage|tensor|Tag|ShapeLike|Values?|Selection|Memory|Allocator)"),
    (r"py:class", r"(Forward|Backward|Operation)"),
    (r"py:class", r".* .*"),  # a type that is said in words
    (r"py:class", r"fucina\.fast\..*(Task|PreparedTensor|ScratchLease|ScratchView|Runtime)"),
    (r"py:class", r"contextlib\..*"),
]


def setup(app: Sphinx) -> None:
    """Register the object type of the specification: ``.. clause:: ID`` and ``:clause:`ID```."""
    app.add_object_type("clause", "clause", objname="clause", indextemplate="pair: %s; clause")
