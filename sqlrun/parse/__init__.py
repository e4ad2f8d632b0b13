"""SQL as checked, qualified syntax trees.

Entry point: `parse.attempt`, which returns a `Query` or problems with their places.
One module per rule about what a query may hold.
"""
