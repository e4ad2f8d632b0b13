"""What unit tests found: differences, coverage, JUnit.

Entry points: `shown`, `differences`.
"""
