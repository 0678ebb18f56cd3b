"""Keep blocks of rows on the workers of a cluster, and send requests to all of them."""
