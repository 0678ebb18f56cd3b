"""Trees: the forest, the readers that fill it, and adapters from other libraries."""
