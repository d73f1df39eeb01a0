"""Models whose circuit is known because it was compiled or planted, and what a run must find on them."""
