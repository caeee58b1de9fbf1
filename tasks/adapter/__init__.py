"""Task adapters: what each layer of a biLM is worth for a task."""
