"""Plain text: from characters to words, tags and trees."""
