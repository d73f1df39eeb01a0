"""Rules over predicates: their algebra, RuleSHAP, their quality, and the rule anchored to one unit."""
