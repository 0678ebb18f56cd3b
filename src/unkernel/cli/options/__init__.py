"""Options: names, types, help."""
