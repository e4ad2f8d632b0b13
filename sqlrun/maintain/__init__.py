"""Update a table by the statements of its stages.

Entry point: `maintain.maintain`.
"""
