"""The files of a model, in a folder or at the top level of a zip: which there are and what each holds."""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

from toolkit.errors import FormatError
from toolkit.hdf5 import DAMAGE, open_local
from toolkit.localhdf5 import too_packed

OPTIONS, WEIGHTS, VOCABULARY, CARD = "options.json", "weights.hdf5", "vocab.txt", "card.json"
NLPL_WEIGHTS = "model.hdf5"  # what simple_elmo, and so an NLPL zip, calls the weights
# Not "*.hdf5": other readers take the first *.hdf5 of a folder for the weights.
SOFTMAX = "softmax.h5"
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)  # the last: encrypted, unknown packing


def holds_model(folder: Path) -> bool:
    """Whether a folder has the options of a model: `options.json`, or AI2's `<name>_options.json`."""
    return any(entry.name.endswith(OPTIONS) for entry in folder.iterdir())


class ModelFiles:
    """Reads the files of a model folder, or of a zip without unpacking it to disk.

    Args:
        path: the folder or zip.

    Raises:
        FormatError: it is neither, or a damaged zip.

    Attributes:
        path: as given.
        names: of all files at the top level, sorted.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._packed = not self.path.is_dir()
        if not self._packed:
            self.names = sorted(entry.name for entry in self.path.iterdir() if entry.is_file())
            return
        if not zipfile.is_zipfile(self.path):
            raise FormatError(f"{self.path} is neither a model folder nor a zip of one")
        try:
            with zipfile.ZipFile(self.path) as archive:
                self.names = sorted(name for name in archive.namelist() if "/" not in name)
        except _DAMAGED_ZIP as error:
            raise FormatError(f"{self.path} is damaged ({error})") from None

    def where(self, name: str) -> str:
        """Return how messages call a file."""
        return f"{self.path}:{name}" if self._packed else str(self.path / name)

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            FormatError: the zip is damaged at that file, or the file is `too_packed`.
        """
        if not self._packed:
            return (self.path / name).read_bytes()
        try:
            with zipfile.ZipFile(self.path) as archive:
                entry = archive.getinfo(name)
                if too_packed(entry.file_size, entry.compress_size):
                    raise FormatError(
                        f"{self.where(name)} unpacks from {entry.compress_size:,} to {entry.file_size:,} bytes: "
                        f"this is no file of a model; if it is, unpack the zip into a folder"
                    )
                return archive.read(entry)
        except _DAMAGED_ZIP as error:
            raise FormatError(f"{self.where(name)} is damaged ({error})") from None

    def hdf5(self, name: str) -> str | io.BytesIO:
        """Return what `h5py.File` opens: a path, or the content that a zip packs."""
        return io.BytesIO(self.read(name)) if self._packed else str(self.path / name)

    def json(self, name: str) -> dict[str, Any]:
        """Return a JSON document that is an object.

        Raises:
            FormatError: it is not.
        """
        try:
            value = json.loads(self.read(name))
        except (ValueError, RecursionError) as error:  # JSON and UTF-8; brackets in brackets
            raise FormatError(f"{self.where(name)} is not valid JSON ({error})") from None
        if not isinstance(value, dict):
            raise FormatError(f"{self.where(name)} holds {type(value).__name__}, not an object with keys")
        return value

    @property
    def options(self) -> str:
        """Return the name of the options: `options.json`, else the one that ends so, as AI2 names it.

        Raises:
            FormatError: there is none, or more than one.
        """
        found = [OPTIONS] if OPTIONS in self.names else [name for name in self.names if name.endswith(OPTIONS)]
        if not found:
            holds = f"; it holds {', '.join(self.names[:5])}{' …' if self.names[5:] else ''}" if self.names else ""
            raise FormatError(f"{self.path} is no model: {OPTIONS} is missing{holds}")
        if len(found) > 1:
            raise FormatError(f"{self.path} holds several models ({', '.join(found)}): give each a folder")
        return found[0]

    @property
    def weights(self) -> str:
        """Return the name of the weights: the one *.hdf5, or the one of several that holds LSTMs.

        Raises:
            FormatError: there is none, or more than one.
        """
        found = [name for name in self.names if name.endswith(".hdf5") and "softmax" not in name]
        if not found:
            raise FormatError(
                f"{self.path} holds {self.options} but no weights (*.hdf5): copy the weights file beside it"
            )
        if len(found) > 1:  # tables of tokens and dumps lie beside the weights, too
            found = [name for name in found if self._holds(name, "RNN_0")] or found
        if len(found) > 1:
            raise FormatError(f"{self.path} holds several weights files ({', '.join(found)}): keep one")
        return found[0]

    @property
    def token_table(self) -> str | None:
        """Return the name of a file beside the weights with the vectors of words (`embedding`), None without one.

        Raises:
            FormatError: there are several.
        """
        beside = (name for name in self.names if name.endswith(".hdf5") and name != self.weights)
        found = [name for name in beside if self._holds(name, "embedding")]
        if len(found) > 1:
            raise FormatError(f"{self.path} holds several tables of tokens ({', '.join(found)}): keep one")
        return found[0] if found else None

    @property
    def vocabulary(self) -> str | None:
        """Return the name of the vocabulary, `vocab.txt` or `vocab.txt.gz`; None without one."""
        return next((name for name in (VOCABULARY, f"{VOCABULARY}.gz") if name in self.names), None)

    def _holds(self, name: str, member: str) -> bool:
        try:
            with open_local(self.hdf5(name), self.where(name)) as file:
                return member in file
        except FormatError:  # no HDF5: some other file
            return False
        except DAMAGE:
            return False
