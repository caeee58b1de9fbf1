"""Where task data lies: the user's data folder, a checksummed download, a file of a pip package."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pooch
import requests

from toolkit.errors import DataError, UsageError
from toolkit.files import check_sha256
from toolkit.packages import installed_file

logger = logging.getLogger(__name__)

SECONDS_WITHOUT_ANSWER = 30


@dataclass(frozen=True)
class Folder:
    """Files in a folder of the user's data folder.

    Attributes:
        name: of the folder.
        files: that must all be there.
    """

    fetchable: ClassVar[bool] = False

    name: str
    files: tuple[str, ...]

    def find(self, data: Path | None, cache: Path) -> Path | None:
        """Return `data/name` where it holds the files; DataError where it holds only some of them."""
        if data is None:
            return None
        folder = _existing(data) / self.name
        missing = [name for name in self.files if not (folder / name).is_file()]
        if len(missing) == len(self.files):
            return None
        if missing:
            raise DataError(f"{folder} is incomplete: it lacks {', '.join(missing)}")
        return folder

    def obtain(self, cache: Path) -> Path:
        """Say that this data cannot be fetched."""
        raise DataError(f"no data to fetch: put {', '.join(self.files)} into DIR/{self.name} and say --data DIR")

    def describe(self) -> dict[str, str | int]:
        """Return the place in words."""
        return {"place": f"DATA/{self.name}/ ({', '.join(self.files)})"}


@dataclass(frozen=True)
class Archive:
    """A file at a public address, known by its checksum; a copy in the user's data folder is as good.

    Attributes:
        folder: of the user's data folder where a copy may lie.
        url: its last part is the file's name.
        bytes: size.
        sha256: 64 hexadecimal digits.
        name: of the file, where the address does not end in it.
    """

    fetchable: ClassVar[bool] = True

    folder: str
    url: str
    bytes: int
    sha256: str
    name: str = ""

    @property
    def file(self) -> str:
        """The file's name."""
        return self.name or self.url.rsplit("/", 1)[-1]

    def find(self, data: Path | None, cache: Path) -> Path | None:
        """Return the copy in the data folder, else that in the cache; DataError where its checksum is another."""
        copies = [cache / "downloads" / self.file]
        if data is not None:
            copies = [_existing(data) / self.folder / self.file, _existing(data) / self.file, *copies]
        path = next((copy for copy in copies if copy.is_file()), None)
        if path is not None:
            check_sha256(path, self.sha256, "delete it, or fetch it again")
        return path

    def obtain(self, cache: Path) -> Path:
        """Download the file into the cache, whole or not at all."""
        folder = cache / "downloads"
        logger.info("downloading %s (%.1f MB)", self.url, self.bytes / 1e6)
        pooch.get_logger().setLevel(logging.WARNING)
        try:
            return Path(
                pooch.retrieve(
                    self.url,
                    known_hash=f"sha256:{self.sha256}",
                    fname=self.file,
                    path=folder,
                    downloader=pooch.HTTPDownloader(timeout=SECONDS_WITHOUT_ANSWER),
                )
            )
        except requests.RequestException as error:
            reason = str(error) if isinstance(error, requests.HTTPError) else type(error).__name__
            raise DataError(f"{self.url} cannot be downloaded ({reason}): {self._by_hand(folder)}") from error
        except ValueError as error:  # pooch's way to say that the checksum is another
            raise DataError(f"{self.url} is not the published file ({error}): {self._by_hand(folder)}") from error

    def _by_hand(self, folder: Path) -> str:
        return (
            f"fetch it by other means and put it at {folder / self.file}, or at DIR/{self.folder}/ and say --data DIR"
        )

    def describe(self) -> dict[str, str | int]:
        """Return place, file, bytes, sha256 and url."""
        return {"place": self.url, "file": self.file, "bytes": self.bytes, "sha256": self.sha256, "url": self.url}


@dataclass(frozen=True)
class Archives:
    """Several files at public addresses that belong together: all lie in one folder.

    Attributes:
        files: each with the same `folder` of the user's data folder.
    """

    fetchable: ClassVar[bool] = True

    files: tuple[Archive, ...]

    def find(self, data: Path | None, cache: Path) -> Path | None:
        """Return the folder that holds all the files; DataError where a checksum is another."""
        paths = [file.find(data, cache) for file in self.files]
        return paths[0].parent if all(paths) and len({path.parent for path in paths}) == 1 else None

    def obtain(self, cache: Path) -> Path:
        """Download the files into the cache and return their folder."""
        paths = [file.obtain(cache) for file in self.files]
        return paths[0].parent

    def describe(self) -> dict[str, str | int]:
        """Return the addresses in words."""
        return {"place": ", ".join(f"{file.url} (sha256 {file.sha256})" for file in self.files)}


@dataclass(frozen=True)
class PackageFile:
    """A data file of an installed pip package; the package itself is never imported.

    Attributes:
        distribution: the package's name on the index.
        file: path within the installation.
        bytes: size.
        sha256: 64 hexadecimal digits.
        extra: our extra that installs the package.
    """

    fetchable: ClassVar[bool] = False

    distribution: str
    file: str
    bytes: int
    sha256: str
    extra: str

    def find(self, data: Path | None, cache: Path) -> Path | None:
        """Return the installed file, None without the package; DataError where its checksum is another."""
        path = installed_file(self.distribution, self.file)
        if path is not None:
            advice = f"install the version of {self.distribution} that the extra {self.extra!r} asks for"
            check_sha256(path, self.sha256, advice)
        return path

    def obtain(self, cache: Path) -> Path:
        """Say how to install the package."""
        raise DataError(
            f"the package {self.distribution} with {self.file} is not installed: "
            f"pip install 'elmo-toolkit[{self.extra}]'"
        )

    def describe(self) -> dict[str, str | int]:
        """Return place, file, bytes and sha256."""
        place = f"pip package {self.distribution} (extra {self.extra!r})"
        return {"place": place, "file": self.file, "bytes": self.bytes, "sha256": self.sha256}


def _existing(data: Path) -> Path:
    folder = data.expanduser()
    if not folder.is_dir():
        raise UsageError(f"no data folder at {data} (working folder {Path.cwd()})")
    return folder
