"""Speed, printed as ratios to a floor measured in the same run: machines differ, and one differs by the hour."""
