"""The run store: one documented folder a run."""
