"""Models of play: settings, engines and people as policies, and values of positions."""
