"""The compiler: syntax trees as operators, and operators as statements over changes.

Entry points: `compile.project` for what a project is compiled to, `statements.prepare` for one tick of one table.
`translate/` makes operators of trees, `operators/` has one operator per file,
`landing/` writes the query over a source's lines.
"""
