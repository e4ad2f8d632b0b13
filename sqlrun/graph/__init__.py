"""Which model reads which: the DAG, its order, selectors, and the lineage of columns.

Entry points: `graph.build`, `lineage.Lineage`.
"""
