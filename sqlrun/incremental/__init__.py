"""The incremental compiler: syntax trees to operators, operators to statements over changes.

Entry points: `compile.project` for the tables of a project, `statements.prepare` for one tick of one table.
`translate/` turns trees into operators, `operators/` has one operator per file, `landing/` writes the query over a
source's lines.
"""
