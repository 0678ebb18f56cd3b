"""Text with columns: treebanks, Japanese bunsetsu, chunks, and drawings of sentences."""
