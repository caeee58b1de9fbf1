"""The dashboard: compares runs and shows senses."""
