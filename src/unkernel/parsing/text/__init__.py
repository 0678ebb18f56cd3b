"""Parse raw text: from characters to words, tags and trees."""
