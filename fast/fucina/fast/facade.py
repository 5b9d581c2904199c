"""Tensors whose axes have names (chapters ``facade``, ``policy`` and ``autograd``).

``Tensor(*tags, dtype=...)`` is the type of the tensors of a dtype whose axes have these tags.  What they all have is
put together from parts: looking (:mod:`~fucina.fast._facade_looking`), constructors
(:mod:`~fucina.fast._facade_making`), and the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fucina.fast._facade_making import Making
from fucina.fast._facade_types import TensorType, root
from fucina.fast._objects import handles, install

__all__ = ["Tensor"]

Parts = Making

if TYPE_CHECKING:

    class Tensor(Parts, metaclass=TensorType):
        """A tensor whose axes have tags; ``Tensor(*tags, dtype=...)`` are the types.

        Clauses: FACADE-TYPE-1
        """

else:
    _text = "A tensor whose axes have tags; ``Tensor(*tags, dtype=...)`` are the types.\n\nClauses: FACADE-TYPE-1"
    _members = {"__slots__": (), "__module__": __name__, "__doc__": _text}
    Tensor = TensorType("Tensor", (handles.Facade,), _members, made=True)
    install(Tensor, Parts)
    root.append(Tensor)
