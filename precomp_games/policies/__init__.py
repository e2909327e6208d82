"""Policies: how they are asked and named, menus, mixtures, and what states are worth by playing on."""
