"""What was done: workflows, steps and recorded events. The commands, and how each view shows what they answer."""
