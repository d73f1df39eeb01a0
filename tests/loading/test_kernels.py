"""What switches the kernels that multiply does switch them: `make test-kernels` runs under another family."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from rounded import same

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
OTHER = dict(
    word.split("=") for word in re.findall(r"^OTHER_KERNELS := (.*)$", MAKEFILE, re.MULTILINE)[0].split()
)
PRODUCTS = """
import sys, numpy as np, torch
from mecharule_ops.loading.products import _product
one, other = (torch.tensor(np.random.default_rng(n).normal(size=(90, 130)), dtype=torch.float32) for n in (0, 1))
sys.stdout.buffer.write(np.stack([(one @ other.T).numpy(), _product(one, other, None).numpy()]).tobytes())
"""


def products(settings: dict[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Of a process of its own: the same product by MKL and by oneDNN."""
    kept = {name: value for name, value in os.environ.items() if name not in OTHER}
    done = subprocess.run([sys.executable, "-c", PRODUCTS], env={**kept, **settings}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    by_mkl, by_onednn = np.frombuffer(done.stdout, np.float32).reshape(2, 90, 90)
    return by_mkl, by_onednn


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this processor's torch has no MKL")
def test_each_library_multiplies_otherwise() -> None:
    """Each setting changes bits of its own library's products, and nothing beyond a rounding."""
    here, there = products({}), products(OTHER)
    for one, other in zip(here, there, strict=True):
        assert not np.array_equal(one, other)
        assert same(one, other, 1e-6)


def test_a_rounding_is_told_from_an_error() -> None:
    """By hand: numbers up to 1 may move by the bound, larger arrays by that share of the largest; else no bit may."""
    one = np.array([0.5, -4.0, np.nan], np.float32)
    assert same((one, 2), (one + 3e-3, 2), 1e-3)
    assert not same(one, one + 5e-3, 1e-3)
    assert not same(one, np.nextafter(one, np.float32(9)), 0.0)
    assert not same((one, 2), (one, 3), 1e-3)
