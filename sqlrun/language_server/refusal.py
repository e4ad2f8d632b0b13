"""Why a column can't be renamed, as one sentence for the editor. Pure."""

from __future__ import annotations


class RefusedError(Exception):
    """A rename that would be wrong, or that can't be proven right. Nothing is changed."""
