"""What readers see: the ledger of ticks, environments, and tables as a published tick has them.

Entry points: `ledger.Ledger`, `reader.query`.
"""
