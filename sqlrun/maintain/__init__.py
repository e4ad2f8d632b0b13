"""A table brought up to date by the statements of its stages.

Entry point: `maintain.maintain`.
"""
