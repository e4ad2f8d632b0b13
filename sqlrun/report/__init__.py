"""Reports of a tick: console lines, HTML, JUnit, run results, the history page.

Entry points: `log_lines.line`, `report_files.write`.
"""
