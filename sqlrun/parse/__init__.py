"""Rendered SQL to checked, qualified syntax trees.

Entry point: `parse.attempt`, which returns a `Query` or problems with their places.
One module per rule about the content of a query.
"""
