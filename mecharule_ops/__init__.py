"""The science of MechaRule as a library: the model's units, the search, the rules, the certificates. Imports nothing above it."""
