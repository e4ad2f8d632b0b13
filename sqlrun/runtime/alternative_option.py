"""An option that excludes others: on the command line it wins over their variables. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource


class Alternative(click.Option):
    """An option that can't be combined with those named in `excludes`.

    A variable is a default: it doesn't count if the command line has one of the others.
    """

    def __init__(self, *args: Any, excludes: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._excludes = excludes

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and where it comes from."""
        if self.name not in opts and not opts.keys().isdisjoint(self._excludes):
            return self.get_default(ctx), ParameterSource.DEFAULT
        return super().consume_value(ctx, opts)
