"""A declared dashboard: its parts, the types that it can show, and what its parts are called.

`nouns.Dashboard` is what an exposure declares: `load` reads it, `serve` answers from it.
"""
