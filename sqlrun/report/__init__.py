"""What a tick tells: console lines, the HTML report, JUnit, run results, the history page.

Entry points: `log_lines.line`, `report_files.write`.
"""
