"""Random and broken lines, judged by both engines and by a strict reader in plain Python that shares no code."""
