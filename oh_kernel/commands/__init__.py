"""What each command of `oh-kernel` does, a module a command."""
