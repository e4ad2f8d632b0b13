"""What unit tests found: differences, coverage, JUnit.

Entry points: `shown.failures`, `differences.table`.
"""
