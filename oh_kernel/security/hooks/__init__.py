"""What may a person's own programs say to a turn: the hooks of `.openhands/hooks.json`."""
