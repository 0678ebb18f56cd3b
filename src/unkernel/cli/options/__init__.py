"""Options of commands: names, types and help."""
