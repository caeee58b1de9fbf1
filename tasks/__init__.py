"""Task adapters: what a layer is worth for a task."""
