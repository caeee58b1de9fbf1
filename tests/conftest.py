"""What the tests share: where data lies, a tiny model, and which tiers run when nothing is asked for."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from oracle import write_random_model, write_random_softmax

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WORDS = ("the", "a", "of", "bank", "river", "money", "was", "is", "spring", "water", "in", "to", ".", ",")


def pytest_configure(config: pytest.Config) -> None:
    """Leave the slow and the browser tier out unless a marker expression or a path asks for them."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell starts background jobs so, and children inherit it: the tests of Ctrl-C would wait in vain.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not config.option.markexpr and config.args_source != pytest.Config.ArgsSource.ARGS:
        config.option.markexpr = "not slow and not browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip browser tests, with the reason, where there is no browser."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=f"none of {', '.join(BROWSERS)} is installed"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of the public data sets: TOOLKIT_DATA, else ../shared/data beside the repository."""
    folder = Path(os.environ.get("TOOLKIT_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder} (TOOLKIT_DATA names another)")
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model folder in the published layout: random weights of a fixed seed, two layers, a vocabulary."""
    return write_random_model(tmp_path_factory.mktemp("models") / "tiny", seed=7, words=WORDS)


@pytest.fixture(scope="session")
def scoring_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return such a model folder with an output layer beside it."""
    folder = write_random_model(tmp_path_factory.mktemp("models") / "scoring", seed=7, words=WORDS)
    write_random_softmax(folder, seed=8)
    return folder
