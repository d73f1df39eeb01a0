"""What a model is asked and when its completion counts as a success: arithmetic, texts, tables of your own."""
