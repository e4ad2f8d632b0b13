"""Syntax trees to operators of the algebra.

Entry point: `translate.translate`. One module per clause.
"""
