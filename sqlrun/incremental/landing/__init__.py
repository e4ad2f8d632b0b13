"""The query over a source's lines: what lands, with which values, and what is quarantined for which reason.

Entry point: `query.query`. `line_grammar` and `line_types` define once which text each type accepts.
"""
