"""An investigation: rivals registered, the test chosen that tells most of them apart per forward, verdicts."""
