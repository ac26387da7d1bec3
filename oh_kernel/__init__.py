"""A software agent inside the notebook."""
