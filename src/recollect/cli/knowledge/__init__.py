"""What agents share: documents, and skills. The commands, and how each view shows what they answer."""
