"""Forwards over spans of many records, clean or with units replaced, which statistics, engine and mechanism share."""
