"""What commands print: text from descriptions, tables, progress."""
