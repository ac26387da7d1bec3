"""What glob and grep stand on: patterns, ignore rules, the walk, the dialect, the children."""
