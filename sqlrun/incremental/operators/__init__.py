"""One operator per file, with the answer to every question of `algebra.Node`.

Entry point: `registry.OPERATORS`, the table of contents.
"""
