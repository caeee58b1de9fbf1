"""Senses: placeholder until the reader lands."""

PAGE = {"order": 3, "title": "Senses", "icon": ":material/menu_book:", "help": "x"}
