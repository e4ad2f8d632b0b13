"""Expectations and measures over the rows that a tick has changed.

Entry points: `check.check` (plan, rows, outcomes) and, beside it, `measure.measure`. Three evaluators give the same
results: Arrow, SQL and Great Expectations.
"""
