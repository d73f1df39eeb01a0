"""The predicate language: parsed, type-checked, evaluated by column, scored; and what proposes predicates offline."""
