"""What a run found, as values a report, a question and a certificate can share."""
