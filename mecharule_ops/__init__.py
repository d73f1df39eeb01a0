"""The science of MechaRule as a library: engine, search, rules, accounts, certificates; imports nothing above it."""
