import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Graphs of a few agents are all overhead: on a busy machine most of it is waiting for a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
