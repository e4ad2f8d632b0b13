"""Describe what sqlrun would do, as text: strategies, costs, statements and checks.

Entry point: `explain.described`.
"""
