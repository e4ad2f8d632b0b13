"""Unit tests written from a warehouse or from a model's query.

Entry points: `record.record`, `scaffold.new_test`.
"""
