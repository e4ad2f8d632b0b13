"""The operators, one per file, with the answers to every question of `algebra.Node`.

Entry point: `registry.OPERATORS`, the table of contents.
"""
