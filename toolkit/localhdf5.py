"""HDF5 files that are read as what they hold themselves: nothing in them may point at another file."""

import os
from typing import Any

import h5py

from toolkit.errors import FormatError

FREE_BYTES = 64 << 20  # a dataset, or a file in a zip, of this size is read however well it is packed
# Weights and vectors hardly get smaller, text four times: what is packed more tightly is made to fill the memory.
MOST_PACKED = 20
MOST_SOFT_LINKS = 16  # one after the other: more are a loop


def too_packed(size: int, packed: int) -> bool:
    """Return whether something that fills `size` bytes in memory is packed into suspiciously few bytes of a file."""
    return size > max(FREE_BYTES, MOST_PACKED * packed)


class LocalGroup(h5py.Group):
    """A group whose members lie in the same file.

    Reading a member raises a FormatError where it, or a group on the way to it, is an external link; where a dataset
    keeps its values in other files (external storage, virtual datasets); or where it is `too_packed`.
    """

    def __getitem__(self, name: Any) -> Any:
        """Return a member."""
        self._check_links(name)
        found = super().__getitem__(name)
        if isinstance(found, h5py.Dataset):
            self._check_dataset(found)
        return LocalGroup(found.id) if isinstance(found, h5py.Group) else found

    def __contains__(self, name: Any) -> bool:
        """Return whether there is such a member."""
        self._check_links(name)
        return super().__contains__(name)

    def link(self, name: str) -> h5py.HardLink | h5py.SoftLink | h5py.ExternalLink | None:
        """Return what kind of member a name is, without following it; None where there is none."""
        links, encoded = self.id.links, name.encode("utf-8")
        if not links.exists(encoded):
            return None
        kind = links.get_info(encoded).type
        if kind == h5py.h5l.TYPE_HARD:
            return h5py.HardLink()
        if kind == h5py.h5l.TYPE_SOFT:
            return h5py.SoftLink(links.get_val(encoded).decode("utf-8"))
        file, path = links.get_val(encoded)
        return h5py.ExternalLink(os.fsdecode(file), path.decode("utf-8"))

    def _check_links(self, name: Any, soft_links: int = 0) -> None:
        if not isinstance(name, str):
            raise TypeError(f"members are looked up by name, not by {type(name).__name__}")
        start = LocalGroup(h5py.h5g.open(self.id, b"/")) if name.startswith("/") else self
        parts = [part for part in name.split("/") if part]
        for end in range(1, len(parts) + 1):
            path = "/".join(parts[:end])
            link = start.link(path)
            if link is None:  # no such member, which the caller is about to see
                return
            if isinstance(link, h5py.ExternalLink):
                raise self._refused(f"{path} is a link to the file {link.filename!r}")
            if isinstance(link, h5py.SoftLink):
                if soft_links == MOST_SOFT_LINKS:
                    raise self._refused(f"{path} is a link that leads in a circle")
                beside = "" if link.path.startswith("/") else "/".join(parts[: end - 1])
                target = "/".join(part for part in (beside, link.path) if part)
                start._check_links("/".join([target, *parts[end:]]), soft_links + 1)
                return

    def _check_dataset(self, found: h5py.Dataset) -> None:
        if found.is_virtual:
            raise self._refused(f"{found.name} is a virtual dataset, made of {_names(found.virtual_sources())}")
        if found.external:
            raise self._refused(f"{found.name} keeps its values in {_names(found.external)}")
        size, packed = found.nbytes, found.id.get_storage_size()
        if too_packed(size, packed):
            raise FormatError(
                f"{self.file.filename}: {found.name} asks for {size:,} bytes of memory and holds {packed:,}: "
                f"this is no file of vectors or weights"
            )

    def _refused(self, what: str) -> FormatError:
        return FormatError(f"{self.file.filename}: {what}: other files are not read; copy the values with h5repack")


class LocalFile(LocalGroup, h5py.File):
    """An HDF5 file, or one in memory, opened for reading; see `LocalGroup`."""


def _names(sources: list[tuple]) -> str:
    """The first of the files that a dataset names: `file_name` of a virtual source, item 0 of an external one."""
    first = sources[0]
    name = first.file_name if hasattr(first, "file_name") else first[0]
    return repr(name) + (f" and {len(sources) - 1} more" if len(sources) > 1 else "")
