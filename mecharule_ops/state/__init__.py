"""What the events so far add up to: pure, without a screen."""
