"""The pages: every file in views/ is one, described by the `PAGE` at its top."""

import ast
from pathlib import Path
from typing import Any

import streamlit as st

VIEWS = Path(__file__).parent / "views"


def pages() -> list[Any]:
    """Return the pages in their order; the first is the start page."""
    found = sorted(((description(path), path) for path in VIEWS.glob("*.py")), key=lambda pair: pair[0]["order"])
    return [
        st.Page(
            path,
            title=page["title"],
            icon=page["icon"],
            help=page["help"],
            default=number == 0,
            visibility=page.get("visibility", "visible"),
        )
        for number, (page, path) in enumerate(found)
    ]


def description(path: Path) -> dict[str, Any]:
    """Return a view's `PAGE` (order, title, icon, help, visibility) without running the view.

    Raises:
        ValueError: the file has none; a page without a title would be a page that nobody finds.
    """
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["PAGE"]:
            return ast.literal_eval(node.value)
    raise ValueError(f"{path} has no PAGE at its top")
