"""One operator per file: its rows, and its changes from the changes of its inputs.

Entry points: `rules.rows`, `rules.changes`.
"""
