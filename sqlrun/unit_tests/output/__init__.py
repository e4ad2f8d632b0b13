"""Results of unit tests: differences, coverage, JUnit.

Entry points: `shown.failures`, `differences.table`.
"""
