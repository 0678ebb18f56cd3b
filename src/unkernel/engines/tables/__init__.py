"""Named arrays that engines read, and the functions that build them from models."""
