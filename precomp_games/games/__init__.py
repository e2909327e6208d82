"""Games of the papers that OpenSpiel lacks, registered with it."""
