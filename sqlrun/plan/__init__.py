"""The plan of a tick: edited models, shared tables, strategies.

Entry points: `plan.tick_plan`, `diff.edits`.
"""
