"""Bytes of a source to records: one JSON object's text per record, the same on both engines.

Entry point: `decode.decode`. The landing query alone judges the records: a decoder never drops or repairs one.
"""
