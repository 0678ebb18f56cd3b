"""Text and tables that commands print, from descriptions in the form of their JSON."""
