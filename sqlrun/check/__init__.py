"""Expectations and measures over a tick's changed rows.

Entry points: `check.check` (plan, rows, outcomes) and `measure.measure`, which runs beside it. Three evaluators return
the same results: Arrow, SQL and Great Expectations.
"""
