"""Tables about ticks: run stats, measures and results of checks, with their history.

Entry points: `receipts.write`, `measures.table`, `check_results.write`.
"""
