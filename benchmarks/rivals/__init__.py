"""What the suite runs beside sqlrun: a folder each, with pinned requirements and what its users would write."""
