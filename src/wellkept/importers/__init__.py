"""Files of other memory programs."""
