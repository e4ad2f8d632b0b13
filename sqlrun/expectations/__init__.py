"""What suites and contracts ask of a table: the catalogue of expectations, their arguments, their SQL.

Entry points: `validate.problems`, `suggest.suggestions`. Nothing is evaluated here: `check` does that.
"""
