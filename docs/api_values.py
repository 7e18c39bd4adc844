"""What griffe does not do by itself: a default is shown as its value, not as a name."""

import inspect
from typing import Any

import griffe

import montecarlo


class Values(griffe.Extension):
    """Puts values in the place of the expressions that defaults are."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:  # noqa: ANN401
        """Take the defaults of a public function, or class, from itself."""
        holder = func.parent if func.name == "__init__" else func
        if holder is None or holder.name not in montecarlo.__all__:
            return
        public = getattr(montecarlo, holder.name)
        if holder.path != f"{public.__module__}.{holder.name}":
            return  # another of the same name
        for name, one in inspect.signature(public).parameters.items():
            if one.default is not inspect.Parameter.empty:
                func.parameters[name].default = repr(one.default)
