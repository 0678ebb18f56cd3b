"""Define the options of commands: names, types and help."""
