"""Write to the terminal: messages, progress and tables."""
