"""Tags, a note and the archive flag of a run: the only file that others than the run itself write."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolkit.errors import FormatError
from toolkit.files import read_json, write_json
from toolkit.runs import schema


class Notes(BaseModel):
    """What a person says about a run."""

    model_config = ConfigDict(frozen=True)

    tags: tuple[str, ...] = Field(())
    note: str = ""
    archived: bool = False


def read_notes(folder: Path) -> Notes:
    """Return a run folder's notes, empty ones when none were written.

    Raises:
        FormatError: notes.json is damaged.
    """
    path = folder / schema.NOTES
    if not path.exists():
        return Notes()
    try:
        return Notes.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FormatError(f"{path}: {where or 'the document'} does not fit: {first['msg']}") from None


def write_notes(folder: Path, notes: Notes) -> None:
    """Write a run folder's notes atomically; tags are stripped, sorted and made unique."""
    tags = sorted({tag.strip() for tag in notes.tags} - {""})
    write_json(folder / schema.NOTES, notes.model_copy(update={"tags": tuple(tags)}).model_dump(mode="json"))


def archive(folder: Path, archived: bool = True) -> None:
    """Set or clear the archive flag; tags and note stay."""
    write_notes(folder, read_notes(folder).model_copy(update={"archived": archived}))
