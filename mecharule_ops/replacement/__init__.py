"""What a replaced unit is set to: the statistics of each baseline, measured on train records and kept in files."""
