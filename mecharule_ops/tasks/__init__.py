"""What a model is asked and when its completion counts as a success: arithmetic, HANS, jailbreak, tables of your own."""
