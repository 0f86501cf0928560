"""Which descriptors are ready? Sources, and the selectors that watch them."""
