"""The query over a source's lines: values of the rows that land, reasons of those in quarantine.

Entry point: `query.query`. `line_grammar` and `line_types` define, once for both engines, which text each type accepts.
"""
