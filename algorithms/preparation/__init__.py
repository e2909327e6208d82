"""Preparation of one side against a fixed opponent: what is worth memorizing, and how sure that is."""
