"""How units move the answer, read off gradients and writes: attribution, leads, pushes, drops. No causal claim."""
