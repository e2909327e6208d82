"""Study material: a page, plots, exports and drills."""
