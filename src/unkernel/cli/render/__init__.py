"""Print text and tables, given descriptions in the same form as the commands' JSON."""
