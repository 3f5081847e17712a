"""Answer recalls from four sources and explain them."""
