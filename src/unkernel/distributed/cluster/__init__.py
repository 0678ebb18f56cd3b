"""Keep blocks of rows on the workers of a cluster, and send questions to all of them."""
