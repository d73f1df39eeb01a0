"""Language models behind one protocol: providers, faults, scripts."""
