"""What tests of the layer that learns to retrieve share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module")
def one_thread():
    """Products of this size are slower on two, and on a busy machine very much so."""
    with threadpool_limits(1, user_api="blas"):
        yield
