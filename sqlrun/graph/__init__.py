"""The dependency graph of models: its order, selectors, and the lineage of columns.

Entry points: `graph.build`, `lineage.Lineage`.
"""
