"""Japanese dependency parsing over bunsetsu."""
