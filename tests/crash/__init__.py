"""Builds that are killed or stopped at named moments, in processes of their own."""
