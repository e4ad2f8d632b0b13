"""A declared dashboard: its parts, the column types it supports, and default names.

`nouns.Dashboard` is the declaration in an exposure: `load` reads it, `serve` answers from it.
"""
