"""What is computed to answer a question about one unit or one typed prompt."""
