"""What people look at and learn from: a page, plots, exports and drills."""
