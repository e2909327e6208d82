"""Games without preparation."""
