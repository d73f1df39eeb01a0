"""What a model is asked and when its completion is a success: arithmetic, HANS, jailbreak, your own tables."""
