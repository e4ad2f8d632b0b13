"""Expectations of suites and contracts: their catalogue, their arguments, their SQL.

Entry points: `validate.problems`, `suggest.suggest`. The package `sqlrun.check` evaluates them.
"""
