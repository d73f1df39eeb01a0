"""The science of MechaRule as a library: units, search, rules, certificates. Imports nothing above it."""
