"""Text with columns: treebanks, Japanese bunsetsu, chunks, and how sentences are drawn."""
