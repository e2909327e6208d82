"""Tasks on a cluster."""
