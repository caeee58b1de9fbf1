"""Data files of installed pip packages, found and read without importing the package."""

import importlib.metadata
from pathlib import Path


def installed_file(distribution: str, file: str) -> Path | None:
    """Return where a file of an installed package lies; None without the package or the file.

    Args:
        distribution: the package's name on the index.
        file: path within the installation, with "/".
    """
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    path = next((Path(str(entry.locate())) for entry in files if entry.as_posix() == file), None)
    return path if path is not None and path.is_file() else None
