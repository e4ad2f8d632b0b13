"""Ingest over HTTP: JSON lines by POST into the folder of a source, durable before the answer.

Entry points: `intake.Intake`, `writer.Writer`, `lines.read`.
"""
