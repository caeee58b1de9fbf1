"""The bidirectional language model: arithmetic and published file layout."""
