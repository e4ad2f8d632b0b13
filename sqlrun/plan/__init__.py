"""What a tick does: a project beside the ledger, edited models, shared tables, strategies.

Entry points: `plan.tick_plan`, `diff.edits`.
"""
