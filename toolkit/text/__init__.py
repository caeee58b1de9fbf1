"""Text: files, tokens, vocabularies and character ids."""
