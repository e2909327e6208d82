"""Who plays how: settings, engines and people as policies, and what positions are worth."""
