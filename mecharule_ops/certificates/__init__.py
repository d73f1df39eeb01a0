"""A claim that can be replayed: written, bundled, verified, and run again."""
