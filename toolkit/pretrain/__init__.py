"""Training a biLM and measuring its perplexity."""
