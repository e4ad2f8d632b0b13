"""What suites and contracts ask of a table: the catalogue of expectations, their arguments, their SQL.

Entry points: `validate.problems`, `suggest.suggest`. Nothing is evaluated here: the package `sqlrun.check` does that.
"""
