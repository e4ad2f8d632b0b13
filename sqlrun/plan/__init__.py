"""The plan of a tick: the project compared with the ledger, edited models, shared tables, strategies.

Entry points: `plan.tick_plan`, `diff.edits`.
"""
