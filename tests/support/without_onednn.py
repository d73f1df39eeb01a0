"""A plugin that has every product go through MKL: `pytest -p without_onednn`."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _by_mkl_alone() -> Iterator[None]:
    from mecharule_ops.loading import products

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_ONEDNN", False)
        yield
