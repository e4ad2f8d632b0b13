"""Authoring of unit tests, from a warehouse or from a model's query.

Entry points: `record.record`, `scaffold.new_test`.
"""
