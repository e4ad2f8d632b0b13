"""Values and names that have broken other systems, played through whole projects."""
